import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, promises as fs, openSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Account, give, spawnIdentity } from './account.ts'
import type { Binaries } from './binaries.ts'
import { EmbeddedError, explainOutput } from './error.ts'
import { ensureSocketDir, type Home } from './home.ts'

export const superuser = 'slipway'
const socketName = '.s.PGSQL.5432'
const stopTimeoutMs = 60_000
const logLimitBytes = 10_000_000

/**
 * Settings for a small server that shares its machine with other programs. Durability settings keep
 * PostgreSQL's safe defaults.
 */
const defaultSettings = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  port: '5432',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  max_connections: '100',
  shared_buffers: '128MB',
  effective_cache_size: '512MB',
  maintenance_work_mem: '64MB',
  wal_compression: 'on',
  max_wal_size: '1GB',
  checkpoint_timeout: '10min',
  random_page_cost: '1.1',
  autovacuum_naptime: '20s',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] ',
}

export interface Postmaster {
  home: Home
  binaries: Binaries
  settings: Record<string, string>
  /** Called when a process of PostgreSQL has been started and this process waits for it. */
  meanwhile?: (() => void) | undefined
}

/**
 * Creates the cluster if it does not exist. The cluster gets its final name only when it is complete, so that
 * a partial one is never used.
 */
export async function ensureCluster(
  { home, binaries, meanwhile }: Postmaster,
  password: string,
): Promise<void> {
  const versionFile = join(home.clusterDir, 'PG_VERSION')
  if (existsSync(home.clusterDir)) {
    const version = (await fs.readFile(versionFile, 'utf8')).trim()
    if (version === binaries.majorVersion) return
    throw new EmbeddedError(
      `${home.clusterDir} was written by PostgreSQL ${version}, but this is PostgreSQL ${binaries.majorVersion}`,
    )
  }
  const { account } = home
  const partial = `${home.clusterDir}.partial-${randomBytes(4).toString('hex')}`
  const passwordFile = `${home.clusterDir}.password`
  try {
    await fs.writeFile(passwordFile, `${password}\n`, { mode: 0o600 })
    give(passwordFile, account)
    const options = [
      '--no-locale',
      '--encoding=UTF8',
      '--data-checksums',
      '--no-instructions',
      '--auth=scram-sha-256',
    ]
    const args = [...options, `--username=${superuser}`, `--pwfile=${passwordFile}`, '-D', partial]
    const initdb = run(binaries.initdb, args, account)
    meanwhile?.()
    const output = await initdb
    if (output !== null) throw explainOutput(output, home.logFile)
    await fs.rename(partial, home.clusterDir)
  } finally {
    await fs.rm(passwordFile, { force: true })
    await removePartials(home)
  }
}

/**
 * Removes the files of first starts that were interrupted. Errors are ignored, because an initdb may still be
 * writing there.
 */
async function removePartials({ clusterDir }: Home): Promise<void> {
  const prefix = `${basename(clusterDir)}.partial-`
  for (const name of await fs.readdir(dirname(clusterDir)))
    if (name.startsWith(prefix))
      await fs.rm(join(dirname(clusterDir), name), { recursive: true, force: true }).catch(() => {})
}

/** Returns null on success, otherwise the output. */
function run(command: string, args: string[], account: Account): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      ...spawnIdentity(account),
      cwd: '/',
      env: environment(),
      detached: true,
    })
    let output = ''
    const collect = (chunk: Buffer) => {
      output += chunk
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.once('error', reject)
    child.once('close', (code) => resolve(code === 0 ? null : output))
  })
}

/**
 * PostgreSQL does not inherit this process's environment, which may contain secrets, or PG* variables that
 * would change PostgreSQL's behavior.
 */
function environment(): NodeJS.ProcessEnv {
  return { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
}

export interface StartedPostmaster {
  /** Returns the output since the start once PostgreSQL has exited; undefined while it runs. */
  exitOutput(): string | undefined
}

/** Starts PostgreSQL in a separate session, so that Ctrl-C in the terminal does not reach it. */
export async function startPostmaster({
  home,
  binaries,
  settings,
  meanwhile,
}: Postmaster): Promise<StartedPostmaster> {
  await ensureSocketDir(home)
  await clearLeftovers(home)
  const size = (await fs.stat(home.logFile).catch(() => null))?.size ?? 0
  if (size > logLimitBytes) await fs.rename(home.logFile, `${home.logFile}.1`)
  const logStart = size > logLimitBytes ? 0 : size
  const all = { ...defaultSettings, ...settings, unix_socket_directories: home.socketDir }
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const log = openSync(home.logFile, 'a', 0o600)
  const child = spawn(binaries.postgres, ['-D', home.clusterDir, ...flags], {
    ...spawnIdentity(home.account),
    cwd: '/',
    env: environment(),
    detached: true,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  child.unref()
  meanwhile?.()
  let failure: Error | undefined
  child.once('error', (error) => {
    failure = error
  })
  return {
    exitOutput: () => {
      if (failure) return failure.message
      if (child.exitCode === null && child.signalCode === null) return undefined
      return readFileSync(home.logFile).subarray(logStart).toString()
    },
  }
}

/**
 * Removes the files of a postmaster that has died. Otherwise PostgreSQL would mistake any process with the
 * recorded pid, even a zombie, for a running postmaster.
 */
async function clearLeftovers(home: Home): Promise<void> {
  if (livingPid(home) !== undefined) return
  await fs.rm(join(home.clusterDir, 'postmaster.pid'), { force: true })
  await fs.rm(join(home.socketDir, `${socketName}.lock`), { force: true })
}

/**
 * Returns the pid of this cluster's running postmaster. Ignores zombies and other processes with the same
 * pid.
 */
export function livingPid(home: Home): number | undefined {
  let pid: number
  try {
    pid = Number(readFileSync(join(home.clusterDir, 'postmaster.pid'), 'utf8').split('\n')[0])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  if (!Number.isInteger(pid) || pid <= 1) return undefined
  const isAlive = process.platform === 'linux' ? isPostmasterByProc(pid, home) : isPostmasterByPs(pid, home)
  return isAlive ? pid : undefined
}

function isPostmasterByProc(pid: number, home: Home): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (state === 'Z' || state === 'X') return false
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return args[1] === '-D' && args[2] === home.clusterDir
  } catch {
    return false
  }
}

function isPostmasterByPs(pid: number, home: Home): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=,command=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z') && stdout.includes(`-D ${home.clusterDir}`)
}

export function socketExists(home: Home): boolean {
  return existsSync(join(home.socketDir, socketName))
}

/** Does a fast shutdown: sessions are ended, all data is written, and the next start needs no recovery. */
export async function stopPostmaster(home: Home): Promise<void> {
  const deadline = Date.now() + stopTimeoutMs
  const pid = livingPid(home)
  if (pid === undefined) return
  process.kill(pid, 'SIGINT')
  while (livingPid(home) === pid) {
    if (Date.now() > deadline)
      throw new EmbeddedError(`PostgreSQL (pid ${pid}) did not stop: see ${home.logFile}`)
    await delay(10)
  }
  await fs.rmdir(home.socketDir).catch(() => {})
}
