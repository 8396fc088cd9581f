import { readFileSync } from 'node:fs'
import { runBackupCommand, runRestoreCommand } from './backup-command.ts'
import { type Config, ConfigError, help, loadConfig } from './config/index.ts'
import { runDoctorCommand } from './doctor-command.ts'
import { EngineError } from './engines/engine.ts'
import { runImagesCommand } from './images-command.ts'
import { runIncusCommand } from './incus-command.ts'
import { openLog } from './log.ts'
import { packageVersion } from './package-root.ts'
import { isDatabaseRefusal, isDatabaseUnavailable } from './postgres/database.ts'
import { EmbeddedError, openEmbedded } from './postgres/embedded/index.ts'
import { NewerSchemaError, OlderSchemaError } from './postgres/migrate.ts'
import { runSecretsCommand } from './secrets-command.ts'
import { AddressTaken, type Server, startServer } from './server.ts'
import { credentialsPath, readCredentials } from './setup/credentials-file.ts'
import { offerSetupCode, seedDemo } from './setup/demo.ts'
import { listServerUrls } from './store/fleet/servers.ts'

type Log = ReturnType<typeof openLog>

const maxStopMs = 10_000

await main()

async function main(): Promise<void> {
  const startedAtMs = performance.timeOrigin
  if (process.argv[2] === 'backup') return command(runBackupCommand)
  if (process.argv[2] === 'restore') return command(runRestoreCommand)
  if (process.argv[2] === 'doctor') return command(runDoctorCommand)
  if (process.argv[2] === 'incus') return command(runIncusCommand)
  if (process.argv[2] === 'images') return command(runImagesCommand)
  if (process.argv[2] === 'secrets') return command(runSecretsCommand)
  const config = read()
  if (config.command === 'help') return void process.stdout.write(help)
  if (config.command === 'version') return void console.log(packageVersion())
  try {
    await serve(config, startedAtMs)
  } catch (error) {
    if (error instanceof ConfigError) exitWith(2, error.message)
    const reason = expectedReason(error, config)
    if (reason) exitWith(1, reason)
    throw error
  }
}

async function command(run: (argv: string[]) => Promise<void>): Promise<void> {
  try {
    await run(process.argv.slice(3))
  } catch (error) {
    exitWith(error instanceof ConfigError || error instanceof TypeError ? 2 : 1, (error as Error).message)
  }
}

function read(): Config {
  try {
    return loadConfig(process.argv.slice(2), process.env, (path) => readFileSync(path, 'utf8'))
  } catch (error) {
    if (error instanceof ConfigError) exitWith(2, error.message)
    throw error
  }
}

/** Returns the message for errors that an operator can fix. Other errors are bugs and show their stack. */
function expectedReason(error: unknown, config: Config): string | undefined {
  const { server, database } = config
  const expected = [EmbeddedError, NewerSchemaError, OlderSchemaError, EngineError, AddressTaken]
  if (expected.some((type) => error instanceof type)) return (error as Error).message
  if (!(error instanceof Error)) return undefined
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall === 'listen' || (syscall === 'getaddrinfo' && database.urls.length === 0))
    return `cannot listen on ${server.host}:${server.port} (${code}): choose another address with --host and --port`
  if (database.urls.length > 0 && (isDatabaseUnavailable(error) || isDatabaseRefusal(error)))
    return `the database in ${database.source} is not usable: ${error.message}`
  return undefined
}

function exitWith(code: number, line: string): never {
  console.error(`slipway: ${line}`)
  process.exit(code)
}

async function serve(config: Config, startedAtMs: number): Promise<void> {
  const log = openLog(config.server.logLevel)
  const reloadWith = reloadOnSignal(log)
  // Report a damaged credentials file before anything is started.
  if (config.isDemo && config.server.role !== 'worker') await readCredentials(config.server.dataDir)
  const { urls } = config.database
  const embedded =
    urls.length > 0
      ? null
      : await phase('Starting PostgreSQL', () =>
          openEmbedded({ dataDir: config.server.dataDir, log: (line) => log.info(line) }),
        )
  let server: Server
  try {
    server = await phase('Starting the service', () => startServer(config, embedded?.url ?? urls, log))
  } catch (error) {
    await embedded?.stop()
    throw error
  }
  stopOnSignal(async () => {
    await server.close()
    await embedded?.stop()
  })
  reloadWith(server)
  if (config.server.role !== 'worker') await printInstructions(config, server)
  log.info({ ms: Math.round(Date.now() - startedAtMs) }, 'ready')
  log.flush()
}

/** Runs a part of the startup, and prints its title and duration on standard error. */
async function phase<T>(title: string, run: () => Promise<T>): Promise<T> {
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

/** Prints how to use the service. */
async function printInstructions(config: Config, server: Server): Promise<void> {
  const url = server.services.publicUrl()
  const { dataDir } = config.server
  const others = (await listServerUrls(server.services.database)).filter((each) => each !== url)
  if (others.length > 0 && config.server.role === 'all') {
    const shared = config.database.urls.length > 0 ? 'database' : `data directory ${dataDir}`
    console.log(
      `\n  Slipway is already running at ${others.join(' and ')}. This server shares its ${shared}.`,
    )
  }
  if (!config.isDemo) {
    const code = await offerSetupCode(server.services.database)
    console.log(`\n  Slipway is ready at ${url}`)
    if (code)
      console.log(
        `  Setup code for the first operator (shown only once, valid for one day): ${code}\n  Use it at ${url}/setup`,
      )
    return
  }
  const before = await readCredentials(dataDir)
  const credentials = await seedDemo(server.services, { api: url, console: url })
  console.log(`\n  Slipway is ready.`)
  if (!credentials) return console.log(`  API  ${url}\n`)
  const file = credentialsPath(dataDir)
  const people = [credentials.email, credentials.operator_email].filter(Boolean).join(' or ')
  console.log(`
  Console     ${credentials.console_url}   (${people}, passwords in ${file})
  Project     ${credentials.project_id}`)
  // Output ends up in the logs of supervisors, so the key is printed only once.
  if (before?.access_key === credentials.access_key) return console.log(`  Access key  in ${file}\n`)
  console.log(`  Access key  ${credentials.access_key}   (shown only once)

  curl -H "Authorization: Bearer ${credentials.access_key}" ${credentials.api_url}/v0.1/projects/${credentials.project_id}/availabilities
`)
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
