import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { type Credentials, credentialsOf, Launcher } from '@slipway/testing/launcher.ts'
import { freePort } from '@slipway/testing/port.ts'
import { postmasterPid } from '@slipway/testing/postgres/postmaster.ts'
import { simulatedLocation } from '@slipway/testing/real-server.ts'
import { Wire } from '@slipway/testing/wire.ts'
import { Database, isDatabaseUnavailable } from '../../src/postgres/database.ts'
import { type Embedded, openEmbedded } from '../../src/postgres/embedded/index.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import type { History } from './history.ts'
import { Member } from './member.ts'

export const locations = ['us-east1-a', 'eu-north1-a']
export const leaseMs = 2_000
export const hourMs = 3_600_000
const hostsPerLocation = 2
export const hosts = locations.flatMap((location) =>
  Array.from({ length: hostsPerLocation }, (_, i) => ({ location, name: `a100-${i + 1}` })),
)
const readyTimeoutMs = 120_000
const outageTimeoutMs = 60_000

/** Two API and two worker processes on one PostgreSQL, each with its own proxy. One worker lacks a location. */
export class Cluster {
  readonly members: Member[]
  readonly database: Database
  readonly dataDir: string
  readonly #launcher: Launcher
  readonly #embedded: Embedded

  private constructor(launcher: Launcher, dataDir: string, embedded: Embedded, members: Member[]) {
    this.#launcher = launcher
    this.#embedded = embedded
    this.dataDir = dataDir
    this.members = members
    this.database = new Database({ url: embedded.url, poolSize: 4 })
  }

  static async start(history: History): Promise<Cluster> {
    const launcher = new Launcher()
    const dataDir = launcher.newDataDir()
    const embedded = await openEmbedded({
      dataDir,
      log: (line) => history.note(`PostgreSQL: ${line}`),
      // PostgreSQL is killed here, but the machine is not, so data that reached the kernel is not lost.
      settings: { fsync: 'off' },
    })
    await migrate(embedded.url)
    const members: Member[] = []
    for (const name of ['api-1', 'api-2', 'worker-1', 'worker-2']) {
      const wire = new Wire(embedded.url)
      await wire.restore()
      const lacksLocation = name === 'worker-2'
      const configFile = join(launcher.dir, `${name}.toml`)
      writeFileSync(configFile, configOf(lacksLocation ? locations.slice(0, 1) : locations))
      const role = name.startsWith('api') ? 'api' : 'worker'
      const port = role === 'api' ? await freePort() : 0
      const clockShiftMs = name === 'worker-1' ? hourMs : 0
      members.push(new Member({ name, role, port, configFile, dataDir, wire, clockShiftMs, history }))
    }
    const cluster = new Cluster(launcher, dataDir, embedded, members)
    try {
      await cluster.#startMembers()
    } catch (error) {
      await cluster.stopMembers()
      await cluster.close()
      throw error
    }
    return cluster
  }

  /** Starts all processes. The first one sets up the database with every location. */
  async #startMembers(): Promise<void> {
    for (const member of this.members) {
      member.start()
      if (member.name === 'api-1') await this.untilReady()
    }
    await this.untilReady()
  }

  get credentials(): Credentials {
    return credentialsOf(this.dataDir)
  }

  get apiUrls(): string[] {
    return this.members.map(({ url }) => url).filter((url) => url !== '')
  }

  /** Waits until all started processes are ready. */
  async untilReady(): Promise<void> {
    await eventually(
      () => this.members.every((member) => member.isReady || !member.isStarted),
      readyTimeoutMs,
    )
  }

  /** Runs a statement, repeatedly if the database is unavailable. Running the statement twice must be safe. */
  async sql<Row = Record<string, unknown>>(text: string, values: unknown[] = []): Promise<Row[]> {
    return this.#untilAvailable(async () => (await this.database.query({ text, values })).rows)
  }

  async #untilAvailable<T>(work: () => Promise<T>): Promise<T> {
    const until = performance.now() + outageTimeoutMs
    for (;;)
      try {
        return await work()
      } catch (error) {
        if (!isDatabaseUnavailable(error) || performance.now() > until) throw error
      }
  }

  /** Ends all sessions. Depending on the argument, new sessions are read-only or can write again. */
  async setReadOnly(isReadOnly: boolean): Promise<void> {
    const database = new URL(this.#embedded.url).pathname.slice(1)
    const client = { connectionString: this.#embedded.url, options: '-c default_transaction_read_only=off' }
    await this.#untilAvailable(async () => {
      const setting = `SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`
      await query(client, `ALTER DATABASE ${database} ${setting}`)
      await query(
        client,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = $1 AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
        [database],
      )
    })
  }

  /** Kills PostgreSQL. The process that opened it starts it again. */
  killPostgres(): void {
    const pid = postmasterPid(this.dataDir)
    if (pid) process.kill(pid, 'SIGKILL')
  }

  /** Writes the output of all processes, to find the cause of a violation. */
  writeLogs(directory: string): void {
    mkdirSync(directory, { recursive: true })
    for (const { name, logLines } of this.members)
      writeFileSync(join(directory, `${name}.log`), logLines.join('\n'))
  }

  async stopMembers(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()))
    await Promise.all(this.members.map(({ options }) => options.wire.cut()))
  }

  async close(): Promise<void> {
    await this.database.close()
    await this.#embedded.stop()
    await this.#launcher.clear()
  }
}

const configOf = (names: string[]) => `
[server]
log_level = "info"
[limits]
requests_per_second = 100000
burst = 100000
organization_requests_per_second = 100000
organization_burst = 100000
[operations]
lease_ms = ${leaseMs}
renew_ms = 500
[webhooks]
allow_private_ranges = ["127.0.0.0/8"]
${names
  .map((name) =>
    simulatedLocation({
      name,
      publicIpv4: `198.18.${64 * locations.indexOf(name)}.0/18`,
      bootMs: [0, 400],
      quarantineMs: 100,
      models: ['A100 40GB PCIe'],
      hostsPerModel: hostsPerLocation,
    }),
  )
  .join('')}`
