import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RouteId, type RouteResponse, routeOf } from '@slipway/contract'
import { eventually } from '@slipway/testing/eventually.ts'
import { credentialsOf, Launcher, readyLine, serverProgram } from '@slipway/testing/launcher.ts'
import type { Ended, Program } from '@slipway/testing/program.ts'
import { exchange } from '@slipway/testing/requests.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import type { ApiResponse, CallOptions, TestService } from '@slipway/testing/service.ts'
import { IncusBench } from '../incus-bench.ts'
import { incusToml } from './config.ts'
import { Relay } from './relay.ts'

export const location = 'gpu-a'
export const image = 'guest:latest'
const port = 8080

interface SshOptions {
  keyFile: string
  /** The key that the guest must have; by default, any. */
  hostKey?: string
}

/**
 * A cluster with agents, and the server program with its own PostgreSQL. As in production, the program runs
 * where it reaches guests by their public addresses: in the network namespace of the client. A relay forwards
 * to its API.
 */
export class ProgramBench {
  readonly bench: IncusBench
  readonly dataDir: string
  readonly resources: ReturnType<typeof resourcesOf>
  readonly #launcher = new Launcher()
  readonly #configFile: string
  #server: Program | undefined
  #relay: Relay | undefined
  #url = ''

  private constructor(bench: IncusBench) {
    this.bench = bench
    this.dataDir = this.#launcher.newDataDir()
    this.#configFile = join(this.#launcher.dir, 'slipway.toml')
    // Common requests need only `call`, `ok` and `ended` of a service.
    this.resources = resourcesOf(this as unknown as TestService)
  }

  static async open(memberCount: number): Promise<ProgramBench> {
    const bench = await IncusBench.cluster(memberCount)
    const opened = new ProgramBench(bench)
    try {
      await bench.startAgents()
      await opened.start()
      const { code, errors } = await opened.command('images', 'adopt', image)
      if (code !== 0) throw new Error(`the image cannot be used: ${errors}`)
      return opened
    } catch (error) {
      await opened.close()
      throw error
    }
  }

  /** Starts the program with these additional settings, and waits until all hosts are up. */
  async start(settings = ''): Promise<Program> {
    const place = { name: location, storage: 'local', public_ipv4: '203.0.113.0/24' }
    const socket = this.bench.members[0]!.socket
    writeFileSync(this.#configFile, `${settings}${incusToml({ socket }, place)}`)
    const args = [serverProgram, '--port', String(port), ...this.#flags]
    this.#server = this.#launcher.run('nsenter', [
      ...[`--net=/run/netns/${this.bench.client}`, process.execPath, ...args],
    ])
    await this.#server.until(readyLine)
    this.#relay ??= new Relay(this.bench, join(this.bench.dir, 'api'), '127.0.0.1', port)
    this.#url ||= `http://${await this.#relay.open()}`
    const { length } = this.bench.members
    await eventually(async () => {
      // The first request after a restart may use a connection to the previous process.
      const hosts = await this.hosts().catch(() => [])
      return hosts.filter(({ state }) => state === 'up').length === length
    }, 120_000)
    return this.#server
  }

  async stop(): Promise<void> {
    await this.#server?.end('SIGTERM')
  }

  /** Runs another command of the server program, with the same data and configuration. */
  command(...words: string[]): Promise<Ended> {
    return this.#launcher.start([...words, ...this.#flags]).ended()
  }

  get #flags(): string[] {
    return ['--data-dir', this.dataDir, '--config', this.#configFile]
  }

  /** Returns the path for a file or folder that is removed with the bench. */
  path = (name: string) => join(this.#launcher.dir, name)

  /** Returns a URL of the API with the host and port that the test can reach. */
  reachable = (url: string) => Object.assign(new URL(url), { host: new URL(this.#url).host })

  async call<Id extends RouteId>(
    id: Id,
    { params = {}, query, body, token }: CallOptions<Id> = {},
  ): Promise<ApiResponse<RouteResponse<Id>>> {
    const { access_key, project_id } = credentialsOf(this.dataDir)
    const { method, path } = routeOf(id)
    const values: Record<string, string> = { project_id, ...params }
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => values[name]!)
    const search = query ? `?${new URLSearchParams(query as Record<string, string>)}` : ''
    const headers = {
      authorization: `Bearer ${token ?? access_key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const content = body === undefined ? undefined : JSON.stringify(body)
    const response = await exchange(method, `${this.#url}${filled}${search}`, headers, content)
    return { status: response.status, headers: response.headers, body: JSON.parse(response.text) }
  }

  async ok<Id extends RouteId>(id: Id, options?: CallOptions<Id>): Promise<RouteResponse<Id>> {
    const { status, body } = await this.call(id, options)
    if (status !== 200) throw new Error(`${id} returned ${status}: ${JSON.stringify(body)}`)
    return body
  }

  async ended(operation_id: string): Promise<RouteResponse<'operationGet'>> {
    for (;;) {
      const operation = await this.ok('operationGet', { params: { operation_id }, query: { wait: 20 } })
      if (operation.state !== 'IN_PROGRESS') return operation
    }
  }

  async hosts() {
    const token = credentialsOf(this.dataDir).operator_key
    return (await this.ok('adminHostList', { token, query: { location } })).items
  }

  async cordon(host_id: string, isCordoned: boolean): Promise<void> {
    const token = credentialsOf(this.dataDir).operator_key
    const body = { schedulable: !isCordoned }
    await this.ok('adminHostUpdate', { token, params: { host_id }, body })
  }

  /** Cordons all other members, so that new VMs are placed on this one. */
  async placeOn(member: string): Promise<void> {
    for (const { id, name } of await this.hosts()) await this.cordon(id, name !== member)
  }

  newVm = (changes: Record<string, unknown> = {}) =>
    this.resources.newVm({ type: 'a100-80gb.1x', location, image, ...changes })

  vm = (vm_id: string) => this.ok('vmGet', { params: { vm_id } })

  async ssh(address: string, command: string, { keyFile, hostKey }: SshOptions): Promise<string> {
    const known = this.path('known_hosts')
    writeFileSync(known, hostKey ? `${address} ${hostKey}\n` : '')
    const options = [`UserKnownHostsFile=${known}`, 'BatchMode=yes', 'LogLevel=ERROR', 'ConnectTimeout=10']
    const all = [...options, `StrictHostKeyChecking=${hostKey ? 'yes' : 'no'}`]
    const flags = ['-i', keyFile, ...all.flatMap((option) => ['-o', option])]
    return (await this.bench.fromClient('ssh', ...flags, `root@${address}`, command)).trim()
  }

  async close(): Promise<void> {
    await this.stop()
    this.#relay?.close()
    await this.#launcher.clear()
    await this.bench.close()
  }
}
