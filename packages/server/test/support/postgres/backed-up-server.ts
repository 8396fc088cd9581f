import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { credentialsOf, type Launcher, readyLine } from '@slipway/testing/launcher.ts'
import type { Program } from '@slipway/testing/program.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { expect } from 'vitest'

interface Response {
  status: number
  body: Record<string, unknown>
}

/** A server with an embedded database, which tests stop, start, back up and restore with the server's commands. */
export class BackedUpServer {
  readonly configFile: string
  readonly #launcher: Launcher
  readonly #dataDir: string
  #program: Program | undefined

  constructor(launcher: Launcher, dataDir: string) {
    this.#launcher = launcher
    this.#dataDir = dataDir
    this.configFile = join(launcher.dir, 'slipway.toml')
  }

  get program(): Program {
    return this.#program!
  }

  async start(config: string): Promise<void> {
    writeFileSync(this.configFile, config)
    const files = ['--data-dir', this.#dataDir, '--config', this.configFile]
    this.#program = this.#launcher.start(['--port', '0', ...files])
    await this.program.until(readyLine)
  }

  async stop(): Promise<void> {
    expect(await this.program.end('SIGTERM')).toBe(0)
  }

  /** Runs a command of the server program for this data directory. */
  command(...args: string[]) {
    return this.#launcher.start([...args, '--data-dir', this.#dataDir]).ended()
  }

  async asOperator(method: string, path: string, body?: object): Promise<Response> {
    return this.#send(method, `/admin${path}`, credentialsOf(this.#dataDir).operator_key, body)
  }

  async inProject(method: string, path: string, body?: object): Promise<Response> {
    const { access_key, project_id } = credentialsOf(this.#dataDir)
    return this.#send(method, `/projects/${project_id}${path}`, access_key, body)
  }

  async #send(method: string, path: string, token: string, body?: object): Promise<Response> {
    const response = await fetch(`${credentialsOf(this.#dataDir).api_url}/v0.1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  /** Waits for the end of the operation that a request begins. Returns the id of its VM. */
  async done(request: Promise<Response>): Promise<string> {
    const { status, body } = await request
    expect([status, body]).toEqual([200, expect.anything()])
    const { operation_id, metadata } = body.operation as { operation_id: string; metadata: { id: string } }
    await eventually(async () => {
      const operation = (await this.inProject('GET', `/operations/${operation_id}?wait=20`)).body
      expect(operation).not.toMatchObject({ state: 'FAILED' })
      return operation.state === 'SUCCEEDED'
    }, 120_000)
    return metadata.id
  }

  createVm(name: string, changes: object = {}): Promise<string> {
    return this.done(this.inProject('POST', '/vms', vmBody({ name, ...changes })))
  }

  act(id: string, action: 'START' | 'STOP'): Promise<string> {
    return this.done(this.inProject('PATCH', `/vms/${id}`, { action }))
  }

  deleteVm(id: string): Promise<string> {
    return this.done(this.inProject('DELETE', `/vms/${id}`))
  }

  async stateOf(id: string): Promise<unknown> {
    return (await this.inProject('GET', `/vms/${id}`)).body.state
  }
}
