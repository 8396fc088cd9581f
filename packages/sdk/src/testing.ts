/** Starts a local service to test client code against (Node only). See {@link startService}. */
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, createClient } from './client.ts'
import { createLevers, type Levers } from './levers.ts'
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
  /** The server program and its first arguments. The default is `slipway-server` of the package `@slipway/server`. */
  command?: string[]
  /** The text of its `slipway.toml`, for a fleet other than the one of the demo. */
  config?: string
  /** Time limit of the start (default 60 s). */
  timeoutMs?: number
}

/** What the service writes to `credentials.json`. */
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
  /** A key for the operator's routes and the levers. */
  operator_key: string
  operator_email: string
  operator_password: string
}

export interface LocalService {
  url: string
  credentials: ServiceCredentials
  /** A client with the access key of the demo's project. */
  client: Client
  /** The same client, bound to the project. */
  project: ProjectClient
  /** Controls the clock, the capacity and the failures of the service. */
  levers: Levers
  /** Stops the service and removes its data. Both also happen without this call when the process ends. */
  stop(): Promise<void>
}

/**
 * Starts a service on a free port with `--dev` and its own data. Its VMs boot at once; `levers.transitions.set` changes
 * that.
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
  const directory = mkdtempSync(join(tmpdir(), 'slipway-local-'))
  // A server that runs as root runs PostgreSQL as another user, which must reach its part of the data.
  chmodSync(directory, 0o711)
  const configFile = join(directory, 'slipway.toml')
  writeFileSync(configFile, config)
  const dataDir = join(directory, 'data')
  const [program = '', ...first] = command
  const server = spawn(
    program,
    [...first, '--dev', '--port', '0', '--data-dir', dataDir, '--config', configFile],
    { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const stop = stopWithThisProcess(server, directory)
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
    throw error
  }
}

/** The levers of a running service that was started with `--dev`; the key is in its `credentials.json`. */
export const connectLevers = ({ url, operatorKey }: { url: string; operatorKey: string }): Levers =>
  createLevers({ baseUrl: url, token: operatorKey })

function serverCommand(): string[] {
  const places = [join(process.cwd(), 'package.json'), import.meta.url]
  const folders = places.flatMap((place) => createRequire(place).resolve.paths('@slipway/server') ?? [])
  const programs = folders.map((folder) => join(folder, '@slipway/server/bin/slipway-server.js'))
  const found = programs.find((path) => existsSync(path))
  if (!found)
    throw new Error(
      'The package @slipway/server is not installed. Run npm install --save-dev @slipway/server, or pass the option command.',
    )
  return [process.execPath, found]
}

/** Settings of another service on this machine must not change this one. */
const environment = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('SLIPWAY_') && name !== 'DATABASE_URL'),
  ),
  SLIPWAY_LOG_LEVEL: 'warn',
})

/** Waits for the end of its standard input, ends the process $1, and removes the directory $2. */
const keeperScript = `cat > /dev/null
kill "$1" 2> /dev/null
for i in $(seq 150); do kill -0 "$1" 2> /dev/null || break; sleep 0.1; done
rm -rf "$2"`

/**
 * Starts a shell that cleans up after the server. The system closes the shell's standard input when this process ends, even
 * after a crash. Returns a function that stops the server and cleans up at once.
 */
function stopWithThisProcess(server: ChildProcess, directory: string): () => Promise<void> {
  const keeper = spawn('sh', ['-c', keeperScript, 'sh', String(server.pid), directory], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = new Promise<void>((resolve) => keeper.once('exit', () => resolve()))
  letProcessEnd(keeper)
  return () => {
    keeper.ref()
    keeper.stdin!.end()
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
    // From now on the output is read and discarded, so that its pipe never fills up.
    for (const stream of [server.stdout!, server.stderr!]) stream.removeAllListeners('data').resume()
    letProcessEnd(server)
  }
}

/** Allows the program to exit while the service is still running, if it has nothing else to do. */
function letProcessEnd(child: ChildProcess): void {
  child.unref()
  for (const stream of child.stdio) if (stream instanceof Socket) stream.unref()
}
