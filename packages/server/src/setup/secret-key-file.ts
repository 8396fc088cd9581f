import { randomBytes } from 'node:crypto'
import { promises as fs, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigError } from '../config/index.ts'
import { type SecretKey, type SecretKeys, secretKeyBytes, secretKeyOf } from '../domain/secret-key.ts'
import { withTemporaryFile } from './temporary-file.ts'

const shape = /^[0-9a-f]{64}$/
/** The longest time until a process notices that the file has changed. */
export const fileCheckMs = 1_000

/**
 * The keys of a file, one per line, the newest first. A rotation changes the file while the process runs, so
 * each use of a key first checks the file if the last check is more than a second old.
 */
export class SecretKeyFile implements SecretKeys {
  readonly path: string
  #keys: SecretKey[]
  #version: string
  #checkedAt = performance.now()

  constructor(path: string) {
    this.path = path
    this.#version = versionOf(path)
    this.#keys = readKeys(path)
  }

  get newest(): SecretKey {
    this.#refresh()
    return this.#keys[0]!
  }

  find(id: string): SecretKey | undefined {
    this.#refresh()
    return this.#keys.find((key) => key.id === id)
  }

  get ids(): string[] {
    return this.#keys.map(({ id }) => id)
  }

  /** Reads the file again if it has changed. Keeps the known keys if the file is temporarily unreadable. */
  #refresh(): void {
    if (performance.now() - this.#checkedAt < fileCheckMs) return
    this.#checkedAt = performance.now()
    try {
      const version = versionOf(this.path)
      if (version === this.#version) return
      this.#keys = readKeys(this.path)
      this.#version = version
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
    }
  }
}

export interface SecretKeyLocation {
  /** The file that the operator configured; '' for the file in the data directory. */
  secretKeyFile: string
  dataDir: string
}

/**
 * Loads the master keys from the operator's file, or from the file in the data directory. A missing file in the data
 * directory is created, unless the database already has secrets: `neededKeyId` is the id of the key that encrypts them.
 * Processes that share a database need the same file.
 */
export async function loadSecretKey(
  { secretKeyFile, dataDir }: SecretKeyLocation,
  neededKeyId?: string,
): Promise<SecretKeyFile> {
  const path = secretKeyFile || join(dataDir, 'secret.key')
  const isMissing = !secretKeyFile && !(await fs.stat(path).catch(() => null))
  if (isMissing && neededKeyId !== undefined)
    throw new ConfigError(
      `${path} does not exist, but the secrets of this database are encrypted with the secret key ${neededKeyId}. Restore the file from a backup, copy it from another process that uses this database, or set SLIPWAY_SECRET_KEY_FILE to its path`,
    )
  if (isMissing) await makeSecretKey(path)
  return new SecretKeyFile(path)
}

/** Replaces the keys in the file; `keys` begins with the newest. Keeps the file's owner and permissions. */
export async function writeSecretKeys(path: string, keys: SecretKey[]): Promise<void> {
  const { uid, gid, mode } = await fs.stat(path)
  await withTemporaryFile(path, async (temporary) => {
    const file = await fs.open(temporary, 'wx', mode & 0o777)
    await file.writeFile(keys.map(({ bytes }) => `${bytes.toString('hex')}\n`).join(''))
    await file.chown(uid, gid)
    await file.sync()
    await file.close()
    await fs.rename(temporary, path)
  })
}

export function readKeys(path: string): SecretKey[] {
  const lines = readOrExplain(path, () => readFileSync(path, 'utf8'))
    .trim()
    .split(/\s*\n\s*/)
  if (!lines.every((line) => shape.test(line)))
    throw new ConfigError(
      `${path}: must contain ${secretKeyBytes} random bytes as ${secretKeyBytes * 2} hex digits, or several such lines, the newest key first`,
    )
  return lines.map((line) => secretKeyOf(Buffer.from(line, 'hex')))
}

const versionOf = (path: string): string =>
  readOrExplain(path, () => {
    const { ino, mtimeMs, size } = statSync(path)
    return `${ino} ${mtimeMs} ${size}`
  })

function readOrExplain<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new ConfigError(`${path}: the secret key cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

/**
 * Uses a hard link, which fails if another process has created the file. A rename would replace that file.
 */
async function makeSecretKey(path: string): Promise<void> {
  await fs.mkdir(dirname(path), { recursive: true })
  await withTemporaryFile(path, async (temporary) => {
    const key = randomBytes(secretKeyBytes).toString('hex')
    await fs.writeFile(temporary, `${key}\n`, { mode: 0o600, flag: 'wx' })
    await fs.link(temporary, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  })
}
