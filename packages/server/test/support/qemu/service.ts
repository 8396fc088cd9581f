import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { RouteResponse } from '@slipway/contract'
import { createDatabase, type TestDatabase } from '@slipway/testing/database.ts'
import { credentialsOf, Launcher, readyLine } from '@slipway/testing/launcher.ts'
import type { Program } from '@slipway/testing/program.ts'
import { expect } from 'vitest'
import { WebSocket } from 'ws'
import { makeBench, type QemuBench } from '../qemu-bench.ts'

/** An open serial console. */
export interface OpenedConsole {
  sessionId: string
  socket: WebSocket
  /** Everything that the session has received. */
  output(): string
  /** The code with which the session ends. */
  closed: Promise<number>
}

/** The built server with the qemu engine and the demo, and a client of its API. */
export class QemuService {
  readonly bench: QemuBench
  readonly database: TestDatabase
  readonly #launcher = new Launcher()

  private constructor(bench: QemuBench, database: TestDatabase) {
    this.bench = bench
    this.database = database
  }

  static async open(): Promise<QemuService> {
    return new QemuService(await makeBench(), await createDatabase())
  }

  async close(): Promise<void> {
    await this.#launcher.clear()
    await this.bench.close()
    await this.database.drop()
  }

  /** Starts a server. Servers that are started one after another share database and data directory. */
  async start({ bootTimeoutS }: { bootTimeoutS: number }): Promise<Program> {
    const { dataDir, publicAddress } = this.bench
    const file = join(dataDir, 'slipway.toml')
    const range = `${publicAddress.split('.').slice(0, 3).join('.')}.0/24`
    writeFileSync(
      file,
      `[[location]]\nname = "local-a"\nengine = "qemu"\n[location.qemu]\nscale = 0.002\n` +
        `address_range = "${range}"\nboot_timeout_s = ${bootTimeoutS}\n`,
    )
    // A relative path, as users type it.
    const args = ['--port', '0', '--data-dir', relative(this.#launcher.dir, dataDir), '--config', file]
    const server = this.#launcher.start(args, { env: { DATABASE_URL: this.database.url } })
    await server.until(readyLine)
    return server
  }

  vmBody(name: string) {
    const ssh_public_key = this.bench.sshPublicKey
    return { name, type: 'a100-80gb.1x', location: 'local-a', image: 'mini:latest', ssh_public_key }
  }

  request(method: string, path: string, body?: unknown): Promise<Response> {
    const { api_url, access_key, project_id } = credentialsOf(this.bench.dataDir)
    const headers: Record<string, string> = { authorization: `Bearer ${access_key}` }
    if (body !== undefined) headers['content-type'] = 'application/json'
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    return fetch(`${api_url}/v0.1/projects/${project_id}${path}`, { method, headers, ...content })
  }

  /** Throws if the response is an error. */
  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.request(method, path, body)
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${text}`)
    return JSON.parse(text) as T
  }

  /** Sends a request that begins an operation. */
  begin(method: string, path: string, body?: unknown): Promise<RouteResponse<'vmCreate'>> {
    return this.call(method, path, body)
  }

  /** Waits for the end of an operation. */
  async ended({ operation }: RouteResponse<'vmCreate'>): Promise<RouteResponse<'operationGet'>> {
    const path = `/operations/${operation.operation_id}?wait=30`
    for (;;) {
      const found = await this.call<RouteResponse<'operationGet'>>('GET', path)
      if (found.state !== 'IN_PROGRESS') return found
    }
  }

  /** Sends a request whose operation must succeed, and returns the id of the operation's resource. */
  async change(method: string, path: string, body?: unknown): Promise<string> {
    const response = await this.begin(method, path, body)
    expect(await this.ended(response)).toMatchObject({ state: 'SUCCEEDED' })
    return response.operation.metadata.id
  }

  vm(id: string): Promise<RouteResponse<'vmGet'>> {
    return this.call('GET', `/vms/${id}`)
  }

  async openConsole(vmId: string, mode: 'read' | 'write'): Promise<OpenedConsole> {
    const path = `/vms/${vmId}/console`
    const ticket = await this.call<RouteResponse<'vmConsoleCreate'>>('POST', path, { mode })
    const socket = new WebSocket(ticket.url, 'slipway.console.v1')
    let output = ''
    socket.on('message', (data, isBinary) => {
      if (isBinary) output += String(data)
    })
    const closed = new Promise<number>((resolve) => socket.once('close', resolve))
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
    return { sessionId: ticket.session_id, socket, output: () => output, closed }
  }
}
