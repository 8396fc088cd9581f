import { spawnSync } from 'node:child_process'
import { chownSync, lstatSync, mkdirSync, readFileSync } from 'node:fs'
import { unsupported } from './error.ts'

/** The system user that PostgreSQL runs as. PostgreSQL refuses to run as root. */
export interface Account {
  uid: number
  gid: number
  /** True if this process runs as a different user. */
  isOther: boolean
}

/**
 * Returns the current user. If that is root, returns the owner of the existing cluster instead; without a
 * cluster, returns `postgres` or `nobody`.
 */
export function chooseAccount(clusterDir: string | undefined): Account {
  const uid = process.getuid?.()
  const gid = process.getgid?.()
  if (uid === undefined || gid === undefined) throw unsupported(process.platform)
  if (uid !== 0) return { uid, gid, isOther: false }
  const owner = clusterDir ? lstatSync(clusterDir, { throwIfNoEntry: false }) : undefined
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, isOther: true }
  const users = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const fields = users.find((line) => line.startsWith(`${name}:`))?.split(':')
    const [, , userId, groupId] = fields ?? []
    if (Number(userId) > 0) return { uid: Number(userId), gid: Number(groupId), isOther: true }
  }
  throw unsupported('it cannot run as root, and there is no user "postgres" or "nobody"')
}

export function spawnIdentity(account: Account): { uid?: number; gid?: number } {
  return account.isOther ? { uid: account.uid, gid: account.gid } : {}
}

export function give(path: string, account: Account): void {
  if (account.isOther) chownSync(path, account.uid, account.gid)
}

/** Creates a directory that only this user can write to. Returns false if that is not possible. */
export function makeOwnDir(path: string): boolean {
  try {
    mkdirSync(path, { recursive: true, mode: 0o755 })
    const stats = lstatSync(path)
    return stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o022) === 0
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') throw error
    return false
  }
}

/**
 * Tests access as the account's user, so that ACLs, mount options and the modes of all parent directories are
 * taken into account.
 */
export function canUse(path: string, test: '-r' | '-w' | '-x', account: Account): boolean {
  if (!account.isOther) return true
  const { status } = spawnSync('/bin/sh', ['-c', `test ${test} "$0"`, path], {
    ...spawnIdentity(account),
    cwd: '/',
    stdio: 'ignore',
  })
  return status === 0
}
