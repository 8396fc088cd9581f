import { constants, promises as fs } from 'node:fs'
import { join } from 'node:path'
import { type Account, give } from './account.ts'
import { ignore } from './home.ts'

/**
 * Folders whose content the server recreates. PostgreSQL's documentation lists them for backups of a running
 * server.
 */
const emptiedFolders = new Set([
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
])
const isOmitted = (name: string): boolean =>
  name === 'postmaster.pid' || name === 'postmaster.opts' || /^pgsql_tmp|^pg_internal\.init/.test(name)

/**
 * This file contains the position where recovery begins. It is copied last, as in PostgreSQL's own backup
 * program.
 */
const controlFile = 'global/pg_control'

/**
 * Copies the files of a cluster between the start and the stop of a backup. Files may change or disappear in
 * the meantime. The write-ahead log of that period, which `copyLog` adds, makes the copy consistent.
 */
export async function copyRunningCluster(from: string, to: string, account: Account): Promise<void> {
  await makeFolder(to, account)
  await copyFolder(from, to, account, '')
  await copyFile(join(from, controlFile), join(to, controlFile), account)
}

async function copyFolder(from: string, to: string, account: Account, path: string): Promise<void> {
  const entries = await fs.readdir(join(from, path), { withFileTypes: true }).catch(ignore('ENOENT'))
  for (const entry of entries ?? []) {
    const below = join(path, entry.name)
    if (isOmitted(entry.name) || below === controlFile) continue
    if (entry.isDirectory()) {
      await makeFolder(join(to, below), account)
      if (!emptiedFolders.has(below)) await copyFolder(from, to, account, below)
    } else if (entry.isFile()) {
      await copyFile(join(from, below), join(to, below), account).catch(ignore('ENOENT'))
    }
  }
}

/**
 * Copies the segments of the write-ahead log from the first to the last one, which are on the same timeline.
 */
export async function copyLog(
  from: string,
  to: string,
  account: Account,
  { first, last }: { first: string; last: string },
): Promise<void> {
  for (const name of await fs.readdir(join(from, 'pg_wal'))) {
    const isNeeded = /^[0-9A-F]{24}$/.test(name) && name >= first && name <= last
    if (isNeeded || name.endsWith('.history'))
      await copyFile(join(from, 'pg_wal', name), join(to, 'pg_wal', name), account)
  }
}

/** Copies a cluster that is not running, unchanged. */
export async function copyStoppedCluster(from: string, to: string, account: Account): Promise<void> {
  await makeFolder(to, account)
  for (const entry of await fs.readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await copyStoppedCluster(source, target, account)
    else await copyFile(source, target, account)
  }
}

async function makeFolder(path: string, account: Account): Promise<void> {
  await fs.mkdir(path, { mode: 0o700 })
  give(path, account)
}

async function copyFile(from: string, to: string, account: Account): Promise<void> {
  await fs.copyFile(from, to, constants.COPYFILE_FICLONE)
  await fs.chmod(to, 0o600)
  give(to, account)
}
