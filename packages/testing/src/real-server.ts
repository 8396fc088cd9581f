import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { query, type TestDatabase } from './database.ts'
import { type Credentials, credentialsOf, Launcher, queryDataDir, readyLine } from './launcher.ts'
import { freePort } from './port.ts'
import type { Program } from './program.ts'

export interface RealServerOptions {
  /**
   * The database, which is dropped at the end. By default, the server runs its own PostgreSQL, like `npm
   * start`.
   */
  database?: TestDatabase
  /** The content of slipway.toml; by default, two small locations without delays. */
  config?: string
  /** Additional environment variables, such as secrets that the configuration refers to. */
  env?: Record<string, string>
}

interface RunningServer {
  url: string
  dataDir: string
  /** The output until the server was ready. */
  startOutput: string
  /** Starts again after `stop`; the port stays the same. */
  start(): Promise<void>
  stop(): Promise<void>
  /** Runs a statement, for example to read rows or move the clock. */
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>
  close(): Promise<void>
}

export interface RealServer extends RunningServer, Credentials {}

export interface EmptyServer extends RunningServer {
  setupCode: string
}

/** Starts the real program in a separate process, with the demo, whose users and keys the tests use. */
export async function startRealServer(options: RealServerOptions = {}): Promise<RealServer> {
  const server = await launch(options, [])
  return Object.assign(server, credentialsOf(server.dataDir))
}

/**
 * Starts the real program without the demo, with an empty database and a setup code for the first operator.
 */
export async function startEmptyServer(options: RealServerOptions = {}): Promise<EmptyServer> {
  const server = await launch(options, ['--no-demo'])
  return Object.assign(server, { setupCode: /Setup code[^:]*: (\S+)/.exec(server.startOutput)![1]! })
}

async function launch(
  { database, config, env: given }: RealServerOptions,
  flags: string[],
): Promise<RunningServer> {
  const launcher = new Launcher()
  // Clients look for a folder with this name in their working folder.
  const dataDir = launcher.newDataDir('.slipway')
  const configFile = join(launcher.dir, 'slipway.toml')
  writeFileSync(configFile, config ?? twoLocations())
  let program: Program | undefined
  const server: RunningServer = {
    url: '',
    dataDir,
    startOutput: '',
    async start() {
      const port = server.url ? new URL(server.url).port : String(await freePort())
      const args = ['--port', port, '--data-dir', dataDir, '--config', configFile, ...flags]
      const env = { ...given, SLIPWAY_LOG_LEVEL: 'info', ...(database && { DATABASE_URL: database.url }) }
      program = launcher.start(args, { env })
      server.startOutput = await program.until(readyLine)
      server.url = /http:\/\/127\.0\.0\.1:\d+/.exec(server.startOutput)![0]
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
  /** GPU models. Each model has `hostsPerModel` hosts with eight GPUs. */
  models?: string[]
  hostsPerModel?: number
}

/** Returns a location section of slipway.toml. */
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

/** Returns two locations with two hosts each; `bootMs` is how long their VMs take to boot. */
export function twoLocations(bootMs = 0): string {
  const models = ['A40 48GB PCIe', 'A100 40GB PCIe']
  const boot: [number, number] = [bootMs, bootMs]
  return [
    simulatedLocation({ name: 'us-east1-a', publicIpv4: '198.18.0.0/18', bootMs: boot, models }),
    simulatedLocation({ name: 'eu-north1-a', publicIpv4: '198.18.64.0/18', bootMs: boot, models }),
  ].join('')
}
