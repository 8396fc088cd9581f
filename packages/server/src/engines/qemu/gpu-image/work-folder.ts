import { randomBytes } from 'node:crypto'
import { chmod, lstat, mkdir, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../command.ts'
import { isRoot } from '../files.ts'
import { Locks } from '../lock.ts'
import type { Progress } from '../mini-guest/index.ts'

const prefix = 'slipway-gpu-image-'
/** Without root, files of different users can be created and removed only in a user namespace. */
export const userNamespace = ['unshare', '--map-root-user', '--map-auto']
export const inUserNamespace = () => (isRoot() ? [] : userNamespace)

export interface WorkFolder {
  /** Only this user can read the files in this folder. */
  files: string
  /**
   * Other users can pass through this folder, because mmdebstrap runs as another user if it is not started by
   * root.
   */
  shared: string
}

/**
 * Runs the work with a new folder in TMPDIR, and removes the folder afterwards. A build that is killed leaves
 * its folder behind, and the next build removes the folder. A lock shows which folders are in use.
 */
export async function withWorkFolder<T>(
  progress: Progress,
  work: (folder: WorkFolder) => Promise<T>,
): Promise<T> {
  const parent = tmpdir()
  const locks = new Locks(parent)
  await removeLeftovers(parent, locks, progress)
  const name = `${prefix}${randomBytes(6).toString('hex')}`
  const shared = join(parent, name)
  // The lock is taken first, so that a concurrent build never finds the folder without its lock.
  return locks.with(name, new AbortController().signal, async () => {
    try {
      const files = join(shared, 'files')
      await mkdir(shared, { mode: 0o700 })
      await mkdir(files, { mode: 0o700 })
      await chmod(shared, 0o711)
      return await work({ files, shared })
    } finally {
      await removeTree(shared)
    }
  })
}

async function removeLeftovers(parent: string, locks: Locks, progress: Progress): Promise<void> {
  for (const name of (await readdir(parent)).filter((each) => each.startsWith(prefix))) {
    const folder = join(parent, name)
    const isOwn = (await lstat(folder).catch(() => null))?.uid === process.getuid?.()
    if (!isOwn) continue
    const removal = locks.tryWith(name, () => removeTree(folder))
    const isRemoved = await removal.catch((error: Error) => {
      progress(`${folder} of an earlier build could not be removed: ${error.message}`)
      return false
    })
    if (isRemoved) progress(`removed ${folder}, which an earlier build left behind`)
  }
}

/** Never removes the files of another file system that may be mounted in the folder. */
async function removeTree(folder: string): Promise<void> {
  const options = { launcher: inUserNamespace(), showsPaths: true, timeoutMs: 600_000 }
  await run('rm', ['-rf', '--one-file-system', folder], options)
}
