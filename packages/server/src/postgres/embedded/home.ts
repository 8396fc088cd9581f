import { createHash, randomBytes } from 'node:crypto'
import { promises as fs, lstatSync, type Stats } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Account, canUse, chooseAccount, give, makeOwnDir } from './account.ts'
import { EmbeddedError } from './error.ts'

/** The paths of one embedded PostgreSQL. */
export interface Home {
  account: Account
  /** The cluster itself (PGDATA). */
  clusterDir: string
  logFile: string
  /** A short path, because the path of a socket can have at most about 100 bytes. */
  socketDir: string
}

const insideName = 'postgres'

/** Directories outside of the data directory, for a PostgreSQL user that cannot reach the data directory. */
export const outsideDirs = ['/var/lib/slipway', join(tmpdir(), 'slipway')]

/**
 * Writes a file once and atomically. If several processes start at the same time, they all get the text of
 * the first one.
 */
async function writeOnce(path: string, makeText: () => Promise<string>): Promise<string> {
  const read = () => fs.readFile(path, 'utf8').catch(ignore('ENOENT'))
  const existing = await read()
  if (existing) return existing.trim()
  const partial = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  await fs.writeFile(partial, `${await makeText()}\n`, { mode: 0o600, flush: true })
  try {
    await fs.link(partial, path).catch(ignore('EEXIST'))
  } finally {
    await fs.rm(partial)
  }
  return (await read())!.trim()
}

export function readPassword(dataDir: string): Promise<string> {
  return writeOnce(join(dataDir, 'postgres-password'), async () => randomBytes(24).toString('hex'))
}

/**
 * Returns the recorded directory of the cluster, or chooses one and records it in the data directory. The caller
 * holds the data directory's lock.
 */
export async function chooseHome(dataDir: string): Promise<Home> {
  const dir = await writeOnce(join(dataDir, 'postgres-home'), () =>
    chooseDir(dataDir, chooseAccount(undefined)),
  )
  // The recorded path may be relative, so that the data directory can be moved.
  const homeDir = resolve(dataDir, dir)
  const clusterDir = join(homeDir, 'data')
  const account = chooseAccount(clusterDir)
  if (dir === insideName) {
    await fs.mkdir(homeDir, { mode: 0o700 }).catch(ignore('EEXIST'))
    give(homeDir, account)
  } else if (!lstatSync(homeDir, { throwIfNoEntry: false })?.isDirectory()) {
    throw new EmbeddedError(`the database of ${dataDir} is in ${homeDir}, which does not exist: restore it`)
  }
  if (!canUse(homeDir, '-w', account))
    throw new EmbeddedError(`cannot write to ${homeDir}: its owner or mode was changed`)
  const socketDir = await chooseSocketDir(join(dataDir, 'postgres-socket'), homeDir, account)
  return { account, clusterDir, logFile: join(homeDir, 'postgres.log'), socketDir }
}

async function chooseDir(dataDir: string, account: Account): Promise<string> {
  const inside = join(dataDir, insideName)
  await fs.mkdir(inside, { mode: 0o700 }).catch(ignore('EEXIST'))
  give(inside, account)
  if (canUse(inside, '-w', account)) return insideName
  await fs.rmdir(inside)
  for (const outside of outsideDirs) {
    // The name is random, so that a data directory that was removed and recreated does not find its old database.
    const dir = join(outside, randomBytes(8).toString('hex'))
    if (!makeOwnDir(outside)) continue
    await fs.mkdir(dir, { mode: 0o700 })
    give(dir, account)
    if (canUse(dir, '-w', account)) return dir
    await fs.rmdir(dir)
  }
  throw new EmbeddedError(
    `the user that PostgreSQL runs as cannot write to ${[dataDir, ...outsideDirs].join(', ')}`,
  )
}

/**
 * Returns the recorded directory of the socket, or chooses one and records it together with the home directory. A
 * copied or moved data directory has another home directory, so it gets its own socket.
 */
async function chooseSocketDir(recordPath: string, homeDir: string, account: Account): Promise<string> {
  const [recordedHome, recordedDir] =
    (await fs.readFile(recordPath, 'utf8').catch(ignore('ENOENT')))?.split('\n') ?? []
  if (recordedDir && recordedHome === homeDir) return recordedDir
  const hash = createHash('sha256').update(`${account.uid} ${homeDir}`).digest('hex').slice(0, 12)
  const dir = join(shortTmpdir(), `slipway-${hash}`)
  const existing = lstatSync(dir, { throwIfNoEntry: false })
  const chosen = existing && !isPrivate(existing, account) ? `${dir}-${randomBytes(6).toString('hex')}` : dir
  await fs.writeFile(`${recordPath}.new`, `${homeDir}\n${chosen}\n`, { mode: 0o600 })
  await fs.rename(`${recordPath}.new`, recordPath)
  return chosen
}

/** Creates the socket's directory. Called at each start, because systems clean up temporary directories. */
export async function ensureSocketDir({ socketDir, account }: Home): Promise<void> {
  const existing = lstatSync(socketDir, { throwIfNoEntry: false })
  if (existing) {
    if (isPrivate(existing, account)) return
    throw new EmbeddedError(`${socketDir} belongs to another user or can be read by other users: remove it`)
  }
  await fs.mkdir(socketDir, { mode: 0o700 }).catch(ignore('EEXIST'))
  give(socketDir, account)
}

function isPrivate(stats: Stats, account: Account): boolean {
  return stats.isDirectory() && stats.uid === account.uid && (stats.mode & 0o077) === 0
}

/** On macOS, the path of the user's temporary directory is too long. */
function shortTmpdir(): string {
  return tmpdir().length <= 40 ? tmpdir() : '/tmp'
}

/** Returns a rejection handler that ignores this error code. */
export function ignore(code: string): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (error.code !== code) throw error
  }
}
