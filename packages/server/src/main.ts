import { readFileSync } from 'node:fs'
import { type Config, ConfigError, help, loadConfig } from './config/index.ts'
import { openLog } from './log.ts'
import { packageVersion } from './package-root.ts'
import { openEmbedded } from './postgres/embedded/index.ts'
import type { Server } from './server.ts'
import { readCredentials } from './setup/credentials-file.ts'

type Log = ReturnType<typeof openLog>

const maxStopMs = 10_000

/** Each command is loaded only if it is used. */
const commands = new Map<string, () => Promise<(argv: string[]) => Promise<void>>>([
  ['backup', async () => (await import('./backup-command.ts')).runBackupCommand],
  ['restore', async () => (await import('./backup-command.ts')).runRestoreCommand],
  ['doctor', async () => (await import('./doctor-command.ts')).runDoctorCommand],
  ['incus', async () => (await import('./incus-command.ts')).runIncusCommand],
  ['images', async () => (await import('./images-command.ts')).runImagesCommand],
  ['secrets', async () => (await import('./secrets-command.ts')).runSecretsCommand],
])

/** Loading the service takes about as long as starting PostgreSQL, so both happen at the same time. */
const loadService = () => import('./startup.ts')

await main()

async function main(): Promise<void> {
  const startedAtMs = performance.timeOrigin
  const load = commands.get(process.argv[2] ?? '')
  if (load) return runCommand(await load())
  const config = readConfig()
  if (config.command === 'help') return void process.stdout.write(help)
  if (config.command === 'version') return void console.log(packageVersion())
  try {
    await serve(config, startedAtMs)
  } catch (error) {
    if (error instanceof ConfigError) exitWith(2, error.message)
    const reason = (await loadService()).expectedReason(error, config)
    if (reason) exitWith(1, reason)
    throw error
  }
}

async function runCommand(run: (argv: string[]) => Promise<void>): Promise<void> {
  try {
    await run(process.argv.slice(3))
  } catch (error) {
    exitWith(error instanceof ConfigError || error instanceof TypeError ? 2 : 1, (error as Error).message)
  }
}

function readConfig(): Config {
  try {
    return loadConfig(process.argv.slice(2), process.env, (path) => readFileSync(path, 'utf8'))
  } catch (error) {
    if (error instanceof ConfigError) exitWith(2, error.message)
    throw error
  }
}

function exitWith(code: number, line: string): never {
  console.error(`slipway: ${line}`)
  process.exit(code)
}

async function serve(config: Config, startedAtMs: number): Promise<void> {
  const log = openLog(config.server.logLevel)
  const enableReload = reloadOnSignal(log)
  // Report a damaged credentials file before anything is started.
  if (config.isDemo && config.server.role !== 'worker') await readCredentials(config.server.dataDir)
  const { urls } = config.database
  const embedded =
    urls.length > 0
      ? null
      : await runPhase('Starting PostgreSQL', () =>
          openEmbedded({
            dataDir: config.server.dataDir,
            log: (line) => log.info(line),
            meanwhile: () => void loadService(),
          }),
        )
  const { printInstructions, startServer } = await loadService()
  let server: Server
  try {
    server = await runPhase('Starting the service', () => startServer(config, embedded?.url ?? urls, log))
  } catch (error) {
    await embedded?.stop()
    throw error
  }
  stopOnSignal(async () => {
    await server.close()
    await embedded?.stop()
  })
  enableReload(server)
  if (config.server.role !== 'worker') await printInstructions(config, server)
  log.info({ ms: Math.round(Date.now() - startedAtMs) }, 'ready')
  log.flush()
}

/** Runs a part of the startup, and prints its title and duration on standard error. */
async function runPhase<T>(title: string, run: () => Promise<T>): Promise<T> {
  const startedAtMs = performance.now()
  process.stderr.write(`${title} … `)
  let ending = 'failed'
  try {
    const result = await run()
    ending = `${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`
    return result
  } finally {
    process.stderr.write(`${ending}\n`)
  }
}

/**
 * Closing a terminal also sends SIGHUP, so a server in a terminal stops on this signal instead of reloading.
 */
const isInTerminal = process.stdin.isTTY === true

/**
 * Reloads the locations at each SIGHUP. A signal that arrives during the start is handled when the server is
 * ready.
 */
function reloadOnSignal(log: Log): (server: Server) => void {
  let onReady: (server: Server) => void = () => {}
  let last: Promise<unknown> = new Promise<Server>((resolve) => {
    onReady = resolve
  })
  const ready = last as Promise<Server>
  if (!isInTerminal)
    process.on('SIGHUP', () => {
      last = last.then(async () => reload(await ready, log))
    })
  return onReady
}

async function reload(server: Server, log: Log): Promise<void> {
  try {
    const config = loadConfig(process.argv.slice(2), process.env, (path) => readFileSync(path, 'utf8'))
    const { needRestart, ...changes } = await server.reload(config)
    log.info(changes, 'locations reloaded')
    if (needRestart.length > 0)
      log.warn({ settings: needRestart }, 'settings other than locations changed: restart to apply them')
  } catch (err) {
    log.error({ err }, `locations not reloaded, nothing was changed: ${(err as Error).message}`)
  }
  log.flush()
}

function stopOnSignal(stop: () => Promise<void>): void {
  let isStopping = false
  const signals = ['SIGINT', 'SIGTERM', ...(isInTerminal ? ['SIGHUP'] : [])]
  for (const signal of signals)
    process.on(signal, () => {
      if (isStopping) return
      isStopping = true
      console.log('  Slipway is stopping.')
      setTimeout(() => process.exit(1), maxStopMs).unref()
      stop().then(
        () => process.exit(0),
        (error) => {
          console.error(error)
          process.exit(1)
        },
      )
    })
}
