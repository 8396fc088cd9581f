/** Starts a local service for testing client code (Node only). See {@link startService}. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, createClient } from './client.ts'
import { createLevers, type Levers } from './levers.ts'
import { copyPrepared, keepData, preparedDirectory } from './prepared-data.ts'
import type { ProjectClient } from './project-client.ts'

export type {
  DevClock,
  DevFault,
  DevFaultCreate,
  DevRequest,
  FaultEffect,
} from '@slipway/contract'
export type { Levers } from './levers.ts'

export interface ServiceOptions {
  /** The server program and its first arguments. The default is `slipway-server` from `@slipway/server`. */
  command?: string[]
  /** The content of `slipway.toml`, for a fleet other than the demo's. */
  config?: string
  /** Time limit for the start (default: 60 s). */
  timeoutMs?: number
}

/** The content of the service's `credentials.json`. */
export interface ServiceCredentials {
  api_url: string
  console_url: string
  organization_id: string
  project_id: string
  /** The owner of the organization. */
  email: string
  password: string
  /** A key of the project. */
  access_key: string
  /** A key for operator routes and `levers`. */
  operator_key: string
  operator_email: string
  operator_password: string
}

export interface LocalService {
  url: string
  credentials: ServiceCredentials
  /** A client with the demo project's access key. */
  client: Client
  /** The same client, bound to the demo project. */
  project: ProjectClient
  /** Controls the clock, the capacity and the failures of the service. */
  levers: Levers
  /** Stops the service and removes its data. This also happens automatically when the process ends. */
  stop(): Promise<void>
}

/**
 * Starts a service on a free port with `--dev` and its own data. Its VMs boot immediately;
 * `levers.transitions.set` changes that. The first start of each day is slower, because it creates the data that
 * later starts copy.
 *
 * @example
 * ```ts
 * const service = await startService()
 * const { project, levers } = service
 * await levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 0 })
 * const offers = await project.collect('offerList', { available: true })
 * log(offers.some(({ type, location }) => type === 'a100.1x' && location === 'us-east1-a'))
 * await service.stop()
 * ```
 */
export async function startService(options: ServiceOptions = {}): Promise<LocalService> {
  const { command = serverCommand(), config = '', timeoutMs = 60_000 } = options
  const prepared = preparedDirectory(command, config)
  if (!existsSync(prepared)) await prepare(prepared, command, config, timeoutMs)
  const { server, dataDir, stop } = await launch(command, config, prepared)
  try {
    await untilReady(server, timeoutMs)
    const credentials: ServiceCredentials = JSON.parse(
      readFileSync(join(dataDir, 'credentials.json'), 'utf8'),
    )
    const { api_url: url, access_key, operator_key: operatorKey, project_id } = credentials
    const client = createClient({ baseUrl: url, token: access_key })
    const levers = connectLevers({ url, operatorKey })
    await levers.transitions.set({ mode: 'immediate' })
    return { url, credentials, client, project: client.project(project_id), levers, stop }
  } catch (error) {
    await stop()
    // The prepared data may be damaged, so the next start creates it again.
    rmSync(prepared, { recursive: true, force: true })
    throw error
  }
}

/** Starts a service once, stops it, and stores its data for later services. */
async function prepare(
  prepared: string,
  command: string[],
  config: string,
  timeoutMs: number,
): Promise<void> {
  const { server, dataDir, stop } = await launch(command, config)
  try {
    await untilReady(server, timeoutMs)
    const exited = once(server, 'exit')
    server.ref()
    server.kill('SIGTERM')
    await exited
    await keepData(dataDir, prepared)
  } finally {
    await stop()
  }
}

/** Starts the server program with a temporary data directory. */
async function launch(command: string[], config: string, prepared = '') {
  const directory = mkdtempSync(join(tmpdir(), 'slipway-local-'))
  // A server that runs as root runs PostgreSQL as another user, which needs access to its data directory.
  chmodSync(directory, 0o711)
  const configFile = join(directory, 'slipway.toml')
  writeFileSync(configFile, config)
  const dataDir = join(directory, 'data')
  await copyPrepared(prepared, dataDir)
  const [program = '', ...first] = command
  const server = spawn(
    program,
    [...first, '--dev', '--port', '0', '--data-dir', dataDir, '--config', configFile],
    { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] },
  )
  return { server, dataDir, stop: stopWithThisProcess(server, directory) }
}

/**
 * Returns the controls of a running service that was started with `--dev`. The key is in `credentials.json`.
 */
export const connectLevers = ({ url, operatorKey }: { url: string; operatorKey: string }): Levers =>
  createLevers({ baseUrl: url, token: operatorKey })

function serverCommand(): string[] {
  const origins = [join(process.cwd(), 'package.json'), import.meta.url]
  const folders = origins.flatMap((origin) => createRequire(origin).resolve.paths('@slipway/server') ?? [])
  const programs = folders.map((folder) => join(folder, '@slipway/server/bin/slipway-server.js'))
  const found = programs.find((path) => existsSync(path))
  if (!found)
    throw new Error(
      'The package @slipway/server is not installed. Run npm install --save-dev @slipway/server, or pass the option command.',
    )
  return [process.execPath, found]
}

/** Returns the environment without the settings of other Slipway services. */
const environment = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('SLIPWAY_') && name !== 'DATABASE_URL'),
  ),
  SLIPWAY_LOG_LEVEL: 'warn',
})

/** Waits until standard input is closed, then stops the process $1 and removes the directory $2. */
const cleanupScript = `cat > /dev/null
kill "$1" 2> /dev/null
for i in $(seq 150); do kill -0 "$1" 2> /dev/null || break; sleep 0.1; done
rm -rf "$2"`

/**
 * Starts a shell that cleans up after the server. The operating system closes the shell's standard input when
 * this process ends, even after a crash. Returns a function that stops the server and cleans up immediately.
 */
function stopWithThisProcess(server: ChildProcess, directory: string): () => Promise<void> {
  const cleaner = spawn('sh', ['-c', cleanupScript, 'sh', String(server.pid), directory], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = new Promise<void>((resolve) => cleaner.once('exit', () => resolve()))
  letProcessEnd(cleaner)
  return () => {
    cleaner.ref()
    cleaner.stdin!.end()
    return ended
  }
}

async function untilReady(server: ChildProcess, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let output = ''
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (problem: string) => reject(new Error(`${problem}\n${output}`.trimEnd()))
      timer = setTimeout(() => fail(`The service was not ready after ${timeoutMs} ms.`), timeoutMs)
      server.once('error', (error) => fail(`Cannot start the service: ${error.message}`))
      server.once('close', (code) => fail(`The service ended with code ${code} before it was ready.`))
      for (const stream of [server.stdout!, server.stderr!])
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text
          if (/^ *Slipway is ready/m.test(output)) resolve()
        })
    })
  } finally {
    clearTimeout(timer)
    // Discard all further output, so that the pipe never fills up.
    for (const stream of [server.stdout!, server.stderr!]) stream.removeAllListeners('data').resume()
    letProcessEnd(server)
  }
}

/** Allows this process to exit while the child is still running. */
function letProcessEnd(child: ChildProcess): void {
  child.unref()
  for (const stream of child.stdio) if (stream instanceof Socket) stream.unref()
}
