import { randomBytes } from 'node:crypto'
import { promises as fs, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigError } from '../config/index.ts'
import { type SecretKey, type SecretKeys, secretKeyBytes, secretKeyOf } from '../domain/secret-key.ts'

const shape = /^[0-9a-f]{64}$/
/** How old our knowledge of the file may be. */
export const lookMs = 1_000

interface SecretKeyPlace {
  secretKeyFile: string
  dataDir: string
}

/**
 * The keys of a file, a line each, the newest first. A rotation writes the file anew while we run: whoever seals or opens
 * something sees to it that the file was looked at within the last second.
 */
export class SecretKeyFile implements SecretKeys {
  readonly path: string
  #keys: SecretKey[]
  #version: string
  #lookedAt = performance.now()

  constructor(path: string) {
    this.path = path
    this.#version = versionOf(path)
    this.#keys = readKeys(path)
  }

  get newest(): SecretKey {
    this.#look()
    return this.#keys[0]!
  }

  find(id: string): SecretKey | undefined {
    this.#look()
    return this.#keys.find((key) => key.id === id)
  }

  get ids(): string[] {
    return this.#keys.map(({ id }) => id)
  }

  /** A file that cannot be read for a moment leaves us with the keys that we have. */
  #look(): void {
    if (performance.now() - this.#lookedAt < lookMs) return
    this.#lookedAt = performance.now()
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

/**
 * The master keys from the file that the operator names, which must be there, else from the data directory, where one is
 * made at the first start. Processes that share a database need the same file.
 */
export async function loadSecretKey(place: SecretKeyPlace): Promise<SecretKeyFile> {
  const path = place.secretKeyFile || join(place.dataDir, 'secret.key')
  if (!place.secretKeyFile) await makeSecretKey(path)
  return new SecretKeyFile(path)
}

/** Puts the keys into the file, the newest first: whole or not at all, for whoever could read it before. */
export async function writeSecretKeys(path: string, keys: SecretKey[]): Promise<void> {
  const { uid, gid, mode } = await fs.stat(path)
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  try {
    const file = await fs.open(temporary, 'wx', mode & 0o777)
    await file.writeFile(keys.map(({ bytes }) => `${bytes.toString('hex')}\n`).join(''))
    await file.chown(uid, gid)
    await file.sync()
    await file.close()
    await fs.rename(temporary, path)
  } finally {
    await fs.rm(temporary, { force: true })
  }
}

export function readKeys(path: string): SecretKey[] {
  const lines = whenReadable(path, () => readFileSync(path, 'utf8'))
    .trim()
    .split(/\s*\n\s*/)
  if (!lines.every((line) => shape.test(line)))
    throw new ConfigError(
      `${path}: must hold ${secretKeyBytes} random bytes as ${secretKeyBytes * 2} hex digits, or several such lines, the newest first`,
    )
  return lines.map((line) => secretKeyOf(Buffer.from(line, 'hex')))
}

const versionOf = (path: string): string =>
  whenReadable(path, () => {
    const { ino, mtimeMs, size } = statSync(path)
    return `${ino} ${mtimeMs} ${size}`
  })

function whenReadable<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new ConfigError(`${path}: the secret key cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

/** Whole or not at all, and never over another process's: a link fails where the name is taken, a rename does not. */
async function makeSecretKey(path: string): Promise<void> {
  if (await fs.stat(path).catch(() => null)) return
  await fs.mkdir(dirname(path), { recursive: true })
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await fs.writeFile(temporary, `${randomBytes(secretKeyBytes).toString('hex')}\n`, {
      mode: 0o600,
      flag: 'wx',
    })
    await fs.link(temporary, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  } finally {
    await fs.rm(temporary, { force: true })
  }
}
