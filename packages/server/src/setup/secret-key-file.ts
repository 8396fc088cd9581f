import { randomBytes } from 'node:crypto'
import { promises as fs } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigError } from '../config/index.ts'
import { type SecretKey, secretKeyBytes, secretKeyOf } from '../domain/secret-key.ts'

const shape = /^[0-9a-f]{64}$/

/**
 * The master key from the file that the operator names, which must be there, else from the data directory, where it is
 * made at the first start. Processes that share a database need the same file.
 */
export async function loadSecretKey(server: { secretKeyFile: string; dataDir: string }): Promise<SecretKey> {
  const path = server.secretKeyFile || join(server.dataDir, 'secret.key')
  if (!server.secretKeyFile) await makeSecretKey(path)
  const text = await fs.readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError(`${path}: the secret key cannot be read (${error.code})`)
  })
  if (!shape.test(text.trim()))
    throw new ConfigError(
      `${path}: must hold ${secretKeyBytes} random bytes as ${secretKeyBytes * 2} hex digits`,
    )
  return secretKeyOf(Buffer.from(text.trim(), 'hex'))
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
