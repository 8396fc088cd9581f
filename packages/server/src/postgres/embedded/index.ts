import { promises as fs } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { provideBinaries } from './binaries.ts'
import { EmbeddedError, explain, explainOutput } from './error.ts'
import { chooseHome, ignore, outsideDirs, readPassword } from './home.ts'
import { exclusively } from './mutex.ts'
import {
  ensureCluster,
  livingPid,
  type Postmaster,
  type StartedPostmaster,
  socketExists,
  startPostmaster,
  stopPostmaster,
  superuser,
} from './postmaster.ts'
import { ensureServiceDatabase, giveToService, servicePassword, serviceRole } from './service-role.ts'

export { EmbeddedError } from './error.ts'

type Log = (line: string) => void

interface EmbeddedOptions {
  dataDir: string
  log: Log
  /** Additional PostgreSQL settings. They apply only if this call starts PostgreSQL. */
  settings?: Record<string, string>
  /** Called each time this process begins to wait for PostgreSQL. The callback may block. */
  meanwhile?: () => void
}

export interface Embedded {
  /** URL of the service's database, for a role that is not a superuser. */
  url: string
  /** URL of the database for a superuser, for maintenance. */
  superuserUrl: string
  /** Detaches from PostgreSQL; the last process that detaches stops it. */
  stop(): Promise<void>
}

const databaseName = 'slipway'
const readyTimeoutMs = 300_000
const retryMs = 15
const sharedMemoryPauseMs = 200
const socketTimeoutMs = 500
const connectTimeoutMs = 5_000
const watchMs = 2_000
/** Every attached process holds this shared advisory lock in its own session, which ends with the process. */
const attachedLock = [0x534c4950, 1]

/**
 * Attaches to this data directory's PostgreSQL, starting it if necessary, and keeps it running until `stop`.
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  try {
    await fs.mkdir(dirname(resolve(options.dataDir)), { recursive: true })
    // A server that runs as root runs PostgreSQL as another user, who must be able to reach the PostgreSQL
    // directory inside the data directory.
    await fs
      .mkdir(options.dataDir, { mode: process.getuid?.() === 0 ? 0o711 : 0o700 })
      .catch(ignore('EEXIST'))
    const dataDir = await fs.realpath(options.dataDir)
    const password = await readPassword(dataDir)
    const whenAlone = <T>(work: () => Promise<T>) => exclusively(dataDir, password, work)
    const { keeper, postmaster, url } = await whenAlone(async () => {
      const home = await chooseHome(dataDir)
      const copyDirs = home.account.isOther ? outsideDirs : [dirname(home.clusterDir)]
      const binaries = await provideBinaries(home.account, copyDirs)
      const { settings = {}, meanwhile } = options
      const postmaster: Postmaster = { home, binaries, settings, meanwhile }
      await ensureCluster(postmaster, password)
      const urlOf = (role: string, word: string, database: string) =>
        `postgresql://${role}:${word}@${encodeURIComponent(home.socketDir)}/${database}`
      const url = {
        keeper: urlOf(superuser, password, 'postgres'),
        superuser: urlOf(superuser, password, databaseName),
        service: urlOf(serviceRole, servicePassword(password), databaseName),
      }
      const keeper = await ensureRunning(postmaster, url.keeper, options.log)
      try {
        await ensureServiceDatabase(keeper, databaseName, servicePassword(password))
        await giveToService(url.superuser, databaseName)
      } catch (error) {
        await keeper.end()
        throw error
      }
      return { keeper, postmaster, url }
    })
    const stop = watch(keeper, postmaster, url.keeper, options.log, whenAlone)
    return { url: url.service, superuserUrl: url.superuser, stop }
  } catch (error) {
    throw explain(error, options.dataDir)
  }
}

/** Starts PostgreSQL if it is not running. Returns an attached session, which proves that it accepts queries. */
export async function ensureRunning(postmaster: Postmaster, url: string, log: Log): Promise<pg.Client> {
  const { home } = postmaster
  const deadline = Date.now() + readyTimeoutMs
  if (livingPid(home) !== undefined && !socketExists(home)) await waitForSocketOrStop(postmaster, log)
  let started: StartedPostmaster | undefined
  let refusal: unknown
  while (Date.now() < deadline) {
    if (livingPid(home) === undefined && started?.exitOutput() === undefined)
      started ??= await startPostmaster(postmaster)
    const output = started?.exitOutput()
    if (output !== undefined) {
      // The sessions of a killed postmaster need a moment to exit.
      if (!/shared memory block .* is still in use/.test(output)) throw explainOutput(output, home.logFile)
      started = undefined
      await delay(sharedMemoryPauseMs)
    }
    if (socketExists(home)) {
      try {
        return await attach(url)
      } catch (error) {
        if (!isNotReadyYet(error)) throw error
        refusal = error
      }
    }
    await delay(retryMs)
  }
  throw new EmbeddedError(`PostgreSQL was not ready after ${readyTimeoutMs / 1000} s: ${String(refusal)}`)
}

/**
 * Waits for the socket of a running postmaster, and stops the postmaster if the socket does not appear: if a
 * cleanup of temporary files removed the socket, the postmaster does not recreate it.
 */
async function waitForSocketOrStop({ home }: Postmaster, log: Log): Promise<void> {
  for (let waitedMs = 0; waitedMs < socketTimeoutMs; waitedMs += retryMs) {
    if (livingPid(home) === undefined || socketExists(home)) return
    await delay(retryMs)
  }
  log(`the PostgreSQL socket in ${home.socketDir} was removed; restarting PostgreSQL`)
  await stopPostmaster(home)
}

async function attach(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'slipway-keeper',
    connectionTimeoutMillis: connectTimeoutMs,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('SELECT pg_advisory_lock_shared($1, $2)', attachedLock)
    return client
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
}

function isNotReadyYet(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  if (
    ['ECONNREFUSED', 'ENOENT', 'ECONNRESET', 'EPIPE', '57P03', '57P01', '57P02', '53300'].includes(code ?? '')
  )
    return true
  return /terminated unexpectedly|timeout/.test(message)
}

async function countOthers(keeper: pg.Client): Promise<number> {
  const { rows } = await keeper.query(
    `SELECT count(*)::int AS others FROM pg_locks
     WHERE locktype = 'advisory' AND classid = $1 AND objid = $2 AND pid <> pg_backend_pid()
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    attachedLock,
  )
  return rows[0].others
}

/** Restarts PostgreSQL whenever this process's session ends. Returns a function that detaches. */
function watch(
  first: pg.Client,
  postmaster: Postmaster,
  url: string,
  log: Log,
  whenAlone: <T>(work: () => Promise<T>) => Promise<T>,
): () => Promise<void> {
  let keeper: pg.Client | undefined
  let isLeaving = false
  let recovery = Promise.resolve()
  let left: Promise<void> | undefined

  const hold = (client: pg.Client) => {
    keeper = client
    client.once('end', () => lose(client))
  }
  const lose = (client: pg.Client) => {
    if (keeper !== client) return
    keeper = undefined
    if (!isLeaving) recovery = recover()
  }
  const recover = async () => {
    log('the connection to PostgreSQL ended; restarting PostgreSQL')
    for (let pauseMs = 100; !isLeaving; pauseMs = Math.min(pauseMs * 2, 5_000)) {
      try {
        hold(await whenAlone(() => ensureRunning(postmaster, url, log)))
        log('PostgreSQL is running again')
        return
      } catch (error) {
        log(explain(error, postmaster.home.clusterDir).message)
        await delay(pauseMs)
      }
    }
  }
  // The end of a session emits an event. The removal of the socket, for example by a cleanup of temporary files, does not.
  const timer = setInterval(() => {
    const client = keeper
    if (!client || socketExists(postmaster.home)) return
    lose(client)
    void client.end().catch(() => {})
  }, watchMs)
  timer.unref()

  const leave = async () => {
    isLeaving = true
    clearInterval(timer)
    await recovery
    await whenAlone(async () => {
      if (livingPid(postmaster.home) === undefined) return
      let client = keeper ?? (await ensureRunning(postmaster, url, log))
      const others = await countOthers(client).catch(async () => {
        client = await ensureRunning(postmaster, url, log)
        return countOthers(client)
      })
      keeper = undefined
      await client.end().catch(() => {})
      if (others === 0) await stopPostmaster(postmaster.home)
    })
  }
  hold(first)
  return () => {
    left ??= leave()
    return left
  }
}
