import { randomBytes } from 'node:crypto'
import { existsSync, promises as fs } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import pg from 'pg'
import { type Account, canUse, give } from './account.ts'
import { type Binaries, provideBinaries } from './binaries.ts'
import { copyLog, copyRunningCluster, copyStoppedCluster } from './copy-cluster.ts'
import { EmbeddedError, explain } from './error.ts'
import { chooseHome, type Home, ignore, outsideDirs, readPassword } from './home.ts'
import { ensureRunning, openEmbedded } from './index.ts'
import { exclusively } from './mutex.ts'
import { livingPid, stopPostmaster, superuser } from './postmaster.ts'

/**
 * The record of a backup. A backup is a folder with the cluster, the password of its superuser, and this
 * record.
 */
interface BackupRecord {
  taken_at: string
  postgres_version: string
  schema_version: number
  /** The number of rows in all tables, counted in the backup itself. */
  rows: number
}

const recordName = 'backup.json'
const passwordName = 'postgres-password'
const backupName = /^\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}Z$/

export interface Backup {
  path: string
  record: BackupRecord
}

/**
 * Backs up the database of a data directory into a new folder below `to`. Servers that use the database can
 * continue to run. A separate PostgreSQL recovers the copy and reads it completely before the copy gets its
 * final name, so that every backup with a final name can be restored.
 */
export async function backUp(dataDir: string, to: string, now = new Date()): Promise<Backup> {
  const name = now
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(':', '-')
  const path = join(resolve(to), name)
  const partial = `${path}.partial-${randomBytes(4).toString('hex')}`
  try {
    if (existsSync(path)) throw new EmbeddedError(`${path} already exists: try again in a second`)
    await fs.mkdir(to, { recursive: true, mode: 0o711 })
    const embedded = await openEmbedded({ dataDir, log: () => {} })
    try {
      const { home, binaries, password } = await findParts(await fs.realpath(dataDir))
      await makePartial(partial, home.account)
      await copy(embedded.superuserUrl, home, join(partial, 'data'))
      await fs.writeFile(join(partial, passwordName), `${password}\n`, { mode: 0o600 })
      const found = await verify(partial, home.account, binaries, password)
      const record = { taken_at: now.toISOString(), ...found }
      await fs.writeFile(join(partial, recordName), `${JSON.stringify(record)}\n`, { mode: 0o600 })
      await syncFolder(partial)
      await fs.rename(partial, path)
      return { path, record }
    } finally {
      await embedded.stop()
    }
  } catch (error) {
    throw explain(error, path)
  } finally {
    await fs.rm(partial, { recursive: true, force: true })
  }
}

/** Removes all backups below `from` except the newest `keep`. Returns the removed paths. */
export async function removeOldBackups(from: string, keep: number): Promise<string[]> {
  const names = (await fs.readdir(from)).filter((name) => backupName.test(name)).sort()
  const old = names.slice(0, Math.max(0, names.length - keep)).map((name) => join(from, name))
  for (const path of old) await fs.rm(path, { recursive: true })
  return old
}

/**
 * Replaces the database of a data directory with a backup. Returns the folder that the earlier database was moved to, if
 * there was one.
 */
export async function restore(dataDir: string, from: string): Promise<Backup & { replaced: string | null }> {
  try {
    const record = await readRecord(from)
    await fs.mkdir(dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 })
    const target = await fs.realpath(dataDir)
    const replaced = await exclusively(target, await readPassword(target), () =>
      replace(target, from, record),
    )
    // This start verifies that the password is correct. It needs no recovery, because the backup was shut down
    // cleanly.
    const embedded = await openEmbedded({ dataDir, log: () => {} })
    await embedded.stop()
    return { path: from, record, replaced }
  } catch (error) {
    throw explain(error, dataDir)
  }
}

async function readRecord(from: string): Promise<BackupRecord> {
  const text = await fs.readFile(join(from, recordName), 'utf8').catch(ignore('ENOENT'))
  if (text === undefined)
    throw new EmbeddedError(`${from} is not a complete backup: it has no file ${recordName}`)
  return JSON.parse(text) as BackupRecord
}

/** The caller holds the data directory's lock. */
async function replace(dataDir: string, from: string, record: BackupRecord): Promise<string | null> {
  const { home, binaries } = await findParts(dataDir)
  if (livingPid(home) !== undefined)
    throw new EmbeddedError(`a server is using ${dataDir}: stop it before you restore a backup`)
  if (record.postgres_version !== binaries.majorVersion)
    throw new EmbeddedError(
      `${from} was written by PostgreSQL ${record.postgres_version}, but this is PostgreSQL ${binaries.majorVersion}`,
    )
  const partial = `${home.clusterDir}.partial-${randomBytes(4).toString('hex')}`
  const replaced = `${home.clusterDir}.replaced-${Date.now()}`
  try {
    await copyStoppedCluster(join(from, 'data'), partial, home.account)
    const hadCluster = existsSync(home.clusterDir)
    if (hadCluster) await fs.rename(home.clusterDir, replaced)
    await fs.copyFile(join(from, passwordName), join(dataDir, passwordName))
    await fs.rename(partial, home.clusterDir)
    return hadCluster ? replaced : null
  } finally {
    await fs.rm(partial, { recursive: true, force: true })
  }
}

async function findParts(dataDir: string): Promise<{ home: Home; binaries: Binaries; password: string }> {
  const home = await chooseHome(dataDir)
  const copyDirs = home.account.isOther ? outsideDirs : [dirname(home.clusterDir)]
  const binaries = await provideBinaries(home.account, copyDirs)
  return { home, binaries, password: await readPassword(dataDir) }
}

async function makePartial(partial: string, account: Account): Promise<void> {
  await fs.mkdir(partial, { mode: 0o700 })
  give(partial, account)
  if (!canUse(partial, '-w', account))
    throw new EmbeddedError(
      `the user that PostgreSQL runs as cannot reach ${dirname(partial)}: choose a directory that all users can access`,
    )
}

/**
 * Copies the cluster with the write-ahead log that its recovery needs. A temporary replication slot keeps the
 * log until the copy is complete.
 */
async function copy(superuserUrl: string, home: Home, to: string): Promise<void> {
  const client = new pg.Client({ connectionString: superuserUrl, application_name: 'slipway-backup' })
  client.on('error', () => {})
  await client.connect()
  try {
    const slot = `slipway_backup_${randomBytes(4).toString('hex')}`
    await client.query('SELECT pg_create_physical_replication_slot($1, true, true)', [slot])
    const started = await client.query(`SELECT pg_walfile_name(pg_backup_start($1, fast => true)) AS first`, [
      basename(to),
    ])
    await copyRunningCluster(home.clusterDir, to, home.account)
    const stopped = await client.query(
      `SELECT labelfile, pg_walfile_name(lsn) AS last FROM pg_backup_stop(wait_for_archive => false)`,
    )
    const label = join(to, 'backup_label')
    await fs.writeFile(label, stopped.rows[0].labelfile, { mode: 0o600 })
    give(label, home.account)
    await copyLog(home.clusterDir, to, home.account, {
      first: started.rows[0].first,
      last: stopped.rows[0].last,
    })
  } finally {
    await client.end()
  }
}

/**
 * Recovers the copy, reads all its tables to verify the checksum of every page, and shuts it down cleanly.
 */
async function verify(
  folder: string,
  account: Account,
  binaries: Binaries,
  password: string,
): Promise<Omit<BackupRecord, 'taken_at'>> {
  const socketDir = await fs.mkdtemp('/tmp/slipway-verify-')
  give(socketDir, account)
  const home: Home = {
    account,
    clusterDir: join(folder, 'data'),
    logFile: join(folder, 'postgres.log'),
    socketDir,
  }
  const url = `postgresql://${superuser}:${password}@${encodeURIComponent(socketDir)}/slipway`
  try {
    const client = await ensureRunning({ home, binaries, settings: { autovacuum: 'off' } }, url, () => {})
    try {
      return { postgres_version: binaries.majorVersion, ...(await readAll(client)) }
    } finally {
      await client.end()
    }
  } finally {
    await stopPostmaster(home)
    await fs.rm(socketDir, { recursive: true, force: true })
    await fs.rm(home.logFile, { force: true })
  }
}

async function readAll(client: pg.Client): Promise<{ schema_version: number; rows: number }> {
  // Only a sequential scan reads every page of a table.
  await client.query(
    'SET enable_indexonlyscan = off; SET enable_indexscan = off; SET enable_bitmapscan = off',
  )
  const tables = await client.query(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'public'`,
  )
  let rows = 0
  for (const { name } of tables.rows) {
    const counted = await client.query(`SELECT count(*)::float8 AS count FROM ${name}`)
    rows += counted.rows[0].count
  }
  const { rows: versions } = await client.query('SELECT max(version) AS version FROM schema_versions')
  return { schema_version: versions[0].version, rows }
}

/** Flushes all files, because the rename to the final name must not reach the disk before the files. */
async function syncFolder(path: string): Promise<void> {
  for (const entry of await fs.readdir(path, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue
    const file = await fs.open(join(entry.parentPath, entry.name), 'r')
    await file.sync().finally(() => file.close())
  }
}
