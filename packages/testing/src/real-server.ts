import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { query, type TestDatabase } from './database.ts'
import { type Credentials, credentialsOf, Launcher, queryDataDir, readyLine } from './launcher.ts'
import { freePort } from './port.ts'
import type { Program } from './program.ts'

export interface RealServerOptions {
  /** Dropped when the server closes. Without one the server keeps a PostgreSQL of its own, as `npm start` does. */
  database?: TestDatabase
  /** The text of its slipway.toml; by default two small locations without delays. */
  config?: string
  /** Further variables of its environment, such as secrets that the config names. */
  env?: Record<string, string>
}

interface RunningServer {
  url: string
  dataDir: string
  /** What it printed until it was ready. */
  said: string
  /** After `stop`: the port stays the same from one start to the next. */
  start(): Promise<void>
  stop(): Promise<void>
  /** Looks at the database, or turns its clock. */
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>
  close(): Promise<void>
}

export interface RealServer extends RunningServer, Credentials {}

export interface EmptyServer extends RunningServer {
  setupCode: string
}

/** The real program in a process of its own, with the demo, whose people and keys the tests use. */
export async function startRealServer(options: RealServerOptions = {}): Promise<RealServer> {
  const server = await launch(options, [])
  return Object.assign(server, credentialsOf(server.dataDir))
}

/** The real program without the demo: an empty store, and the code that makes the first operator. */
export async function startEmptyServer(options: RealServerOptions = {}): Promise<EmptyServer> {
  const server = await launch(options, ['--no-demo'])
  return Object.assign(server, { setupCode: /Set-up code[^:]*: (\S+)/.exec(server.said)![1]! })
}

async function launch(
  { database, config, env: given }: RealServerOptions,
  flags: string[],
): Promise<RunningServer> {
  const launcher = new Launcher()
  // The name that clients look for in their working folder.
  const dataDir = launcher.newDataDir('.slipway')
  const configFile = join(launcher.dir, 'slipway.toml')
  writeFileSync(configFile, config ?? twoLocations())
  let program: Program | undefined
  const server: RunningServer = {
    url: '',
    dataDir,
    said: '',
    async start() {
      const port = server.url ? new URL(server.url).port : String(await freePort())
      const args = ['--port', port, '--data-dir', dataDir, '--config', configFile, ...flags]
      const env = { ...given, SLIPWAY_LOG_LEVEL: 'info', ...(database && { DATABASE_URL: database.url }) }
      program = launcher.start(args, { env })
      server.said = await program.until(readyLine)
      server.url = /http:\/\/127\.0\.0\.1:\d+/.exec(server.said)![0]
    },
    async stop() {
      await program?.end('SIGTERM')
    },
    sql: (text, values) =>
      database ? query(database.url, text, values) : queryDataDir(dataDir, text, values),
    async close() {
      await server.stop()
      await database?.drop()
      await launcher.clear()
    },
  }
  await server.start().catch(async (error) => {
    await server.close()
    throw error
  })
  return server
}

export interface SimulatedLocation {
  name: string
  publicIpv4: string
  bootMs?: [number, number]
  quarantineMs?: number
  /** GPU models, each with this many hosts of eight GPUs. */
  models?: string[]
  hostsPerModel?: number
}

/** A section of slipway.toml. */
export function simulatedLocation(location: SimulatedLocation): string {
  const { name, publicIpv4, bootMs = [0, 0], quarantineMs = 0, models, hostsPerModel = 1 } = location
  const hosts = models?.map((model) => `{ count = ${hostsPerModel}, model = "${model}", gpus = 8 }`)
  return `
[[location]]
name = "${name}"
description = "Simulated ${name}"
engine = "simulated"
storage = "shared"
public_ipv4 = "${publicIpv4}"
[location.simulated]
boot_ms = [${bootMs.join(', ')}]
quarantine_ms = ${quarantineMs}
${hosts ? `hosts = [${hosts.join(', ')}]` : ''}
`
}

/** Two locations of two hosts each; `bootMs` is how long their VMs take to boot. */
export function twoLocations(bootMs = 0): string {
  const models = ['A40 48GB PCIe', 'A100 40GB PCIe']
  const boot: [number, number] = [bootMs, bootMs]
  return [
    simulatedLocation({ name: 'us-east1-a', publicIpv4: '198.18.0.0/18', bootMs: boot, models }),
    simulatedLocation({ name: 'eu-north1-a', publicIpv4: '198.18.64.0/18', bootMs: boot, models }),
  ].join('')
}
