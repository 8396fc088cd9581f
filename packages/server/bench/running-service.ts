import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Credentials, credentialsOf, databaseUrlOf } from '@slipway/testing/launcher.ts'
import { homeOf, killAndWait, postmasterPid } from '@slipway/testing/postgres/postmaster.ts'
import { simulatedLocation } from '@slipway/testing/real-server.ts'
import { root } from '@slipway/testing/root.ts'
import { Database } from '../src/postgres/database.ts'

export const locations = ['us-east1-a', 'eu-north1-a'] as const
const pollMs = 5
/** Effectively disables limits, because all callers belong to few organizations and have one address. */
const unlimited = [
  '[limits]',
  ...['requests_per_second', 'burst', 'organization_requests_per_second', 'organization_burst'],
  ...[
    'organization_in_flight',
    'organization_streams',
    'connections_per_address',
    'unknown_bearers_per_second',
  ],
].map((key) => (key.startsWith('[') ? key : `${key} = 1000000`))
/** Runs as a program, because the first line of this script contains the Node flags of the service. */
const command = [join(root, 'packages/server/bin/slipway-server.js')]

/** One server process. It logs like `npm start`, but to a file. */
export interface ServerProcess {
  pid: number
  url: string
  /** The time from the start of the process until its log says that it is ready. */
  readyMs: number
  stop(): Promise<void>
}

/**
 * The service as users run it: the built program, embedded PostgreSQL with fsync, and simulated hosts that
 * boot VMs immediately.
 */
export class RunningService {
  readonly #dir: string
  readonly #isKept: boolean
  readonly dataDir: string
  readonly #processes = new Set<ChildProcess>()
  #started = 0
  main!: ServerProcess
  database!: Database

  /** If no directory is given, a temporary one is used and removed afterwards. */
  constructor(hosts: number, dir?: string) {
    this.#dir = dir ?? mkdtempSync(join(tmpdir(), 'slipway-bench-'))
    this.#isKept = dir !== undefined
    this.dataDir = join(this.#dir, '.slipway')
    mkdirSync(this.#dir, { recursive: true })
    // If the service runs as root, PostgreSQL runs as another user.
    chmodSync(this.#dir, 0o755)
    this.#configure(hosts)
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => void this.close().finally(() => process.exit(1)))
  }

  #configure(hosts: number): void {
    const sections = locations.map((name, index) =>
      simulatedLocation({
        name,
        publicIpv4: `10.${index * 64}.0.0/10`,
        models: ['A100 40GB PCIe'],
        hostsPerModel: Math.ceil(hosts / locations.length),
      }),
    )
    writeFileSync(join(this.#dir, 'slipway.toml'), [...unlimited, ...sections].join('\n'))
  }

  async start(): Promise<void> {
    this.main = await this.startProcess('all')
    this.database ??= new Database({ url: this.databaseUrl, poolSize: 4, onError: () => {} })
  }

  get credentials(): Credentials {
    return credentialsOf(this.dataDir)
  }

  /** The URL with which a superuser connects, who can read everything. */
  get databaseUrl(): string {
    return databaseUrlOf(this.dataDir)
  }

  get postmaster(): number {
    return postmasterPid(this.dataDir)!
  }

  async postgresVersion(): Promise<string> {
    const { rows } = await this.database.query({ text: 'SHOW server_version' })
    return rows[0].server_version
  }

  startProcess(role: 'all' | 'api', [program = '', ...words] = command): Promise<ServerProcess> {
    const log = join(this.#dir, `server-${this.#started++}.log`)
    const flags = ['--port', '0', '--data-dir', this.dataDir, '--config', join(this.#dir, 'slipway.toml')]
    return this.#begin(program, [...words, ...flags, '--role', role], log)
  }

  async #begin(program: string, args: string[], logFile: string): Promise<ServerProcess> {
    const startedAt = performance.now()
    const log = openSync(logFile, 'w')
    const child = spawn(program, args, { stdio: ['ignore', log, log] })
    closeSync(log)
    this.#processes.add(child)
    const output = () => readFileSync(logFile, 'utf8')
    while (!output().includes('"msg":"ready"')) {
      if (hasEnded(child)) throw new Error(`the server ended early: ${output()}`)
      await delay(pollMs)
    }
    const readyMs = performance.now() - startedAt
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output())![0]
    return { pid: child.pid!, url, readyMs, stop: () => this.#end(child) }
  }

  async #end(child: ChildProcess): Promise<void> {
    this.#processes.delete(child)
    if (hasEnded(child)) return
    const exit = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    await exit
  }

  /** Returns the last lines of the logs of the servers and of PostgreSQL, which `close` removes. */
  endsOfLogs(): string {
    const home = homeOf(this.dataDir)
    return [this.#dir, ...(home ? [home] : [])]
      .flatMap((dir) =>
        readdirSync(dir)
          .filter((name) => name.endsWith('.log'))
          .map((name) => join(dir, name)),
      )
      .map((file) => `${file}:\n${readFileSync(file, 'utf8').split('\n').slice(-20).join('\n')}`)
      .join('\n')
  }

  /** Stops the servers and PostgreSQL, even after a failure. */
  async close(): Promise<void> {
    await this.database?.close()
    const home = homeOf(this.dataDir)
    for (const child of [...this.#processes]) await this.#end(child)
    const postmaster = postmasterPid(this.dataDir)
    if (postmaster) await killAndWait(postmaster, 'SIGQUIT')
    if (this.#isKept) return
    for (const dir of home ? [home, this.#dir] : [this.#dir]) rmSync(dir, { recursive: true, force: true })
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null
