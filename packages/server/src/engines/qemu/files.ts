import { randomBytes } from 'node:crypto'
import { access, type FileHandle, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { EngineError } from '../engine.ts'

/** After a power failure, the file has either its complete old or its complete new content. */
export async function writeAtomically(file: string, content: string | Buffer): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const handle = await open(temporary, 'wx', 0o600)
    await withHandle(handle, async () => {
      await handle.writeFile(content)
      await handle.sync()
    })
    await rename(temporary, file)
    const directory = await open(dirname(file), 'r')
    await withHandle(directory, () => directory.sync())
  } catch (error) {
    await rm(temporary, { force: true })
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC')
      throw new EngineError('unavailable', 'no space left on the disk of this host', { cause: error })
    throw error
  }
}

export function writeJson(file: string, value: unknown): Promise<void> {
  return writeAtomically(file, `${JSON.stringify(value, null, 1)}\n`)
}

export async function readJson<T>(file: string): Promise<T | null> {
  const text = await readText(file)
  return text === null ? null : (JSON.parse(text) as T)
}

export async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

export function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code
  return code === 'ENOENT' || code === 'ENOTDIR'
}

async function withHandle(handle: FileHandle, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } finally {
    await handle.close()
  }
}

/** Throws if the path cannot be checked, because a disk that is temporarily unreadable is not lost. */
export async function pathExists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (cause) {
    if (isMissing(cause)) return false
    throw new EngineError('unavailable', `${path} cannot be read`, { cause })
  }
}

/** Also returns false if this user has no access to the file. */
export const isAccessible = (path: string, mode?: number): Promise<boolean> => succeeds(access(path, mode))

export const succeeds = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  )

export const isRoot = () => process.getuid?.() === 0
