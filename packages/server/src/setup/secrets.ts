import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { ConfigError } from '../config/index.ts'
import { zeroUuid } from '../domain/ids.ts'
import {
  openSecret,
  type SecretKeys,
  sealedKeyId,
  sealSecret,
  secretKeyBytes,
  secretKeyOf,
} from '../domain/secret-key.ts'
import type { Database } from '../postgres/database.ts'
import { holdLock } from '../postgres/locks.ts'
import { findSecretKeyId, sealedColumns, setSecretKeyId } from '../store/identity/sealed.ts'
import {
  fileCheckMs,
  loadSecretKey,
  readKeys,
  type SecretKeyFile,
  type SecretKeyLocation,
  writeSecretKeys,
} from './secret-key-file.ts'

const rowsPerTransaction = 100

/** Loads the secret keys. Throws if the key of the database is not among them; the first process sets that key. */
export async function openSecretKey(database: Database, at: SecretKeyLocation): Promise<SecretKeyFile> {
  return database.transaction(async (tx) => {
    await holdLock(tx, 'secretKey')
    const wanted = await findSecretKeyId(tx)
    const keys = await loadSecretKey(at, wanted)
    if (wanted === undefined) await setSecretKeyId(tx, keys.newest.id)
    else if (!keys.find(wanted))
      throw new ConfigError(
        `${keys.path}: the secrets of this database are encrypted with the secret key ${wanted}, but the file contains ${keys.ids.join(', ')}. Use the same file for all processes of this database (SLIPWAY_SECRET_KEY_FILE)`,
      )
    return keys
  })
}

/**
 * Creates a new key and encrypts all secrets with it while other processes run. They find the new key in the
 * file; the previous key stays there for secrets that they encrypt in the meantime. The rotation can be
 * repeated after an interruption. Returns the new key's id and how many secrets were re-encrypted.
 */
export async function rotateSecretKey(
  database: Database,
  keys: SecretKeyFile,
): Promise<{ keyId: string; count: number }> {
  const fresh = secretKeyOf(randomBytes(secretKeyBytes))
  // Without the lock, concurrent rotations could remove each other's keys from the file.
  await database.transaction(async (tx) => {
    await holdLock(tx, 'secretKey')
    await writeSecretKeys(keys.path, [fresh, ...readKeys(keys.path)])
    await setSecretKeyId(tx, fresh.id)
  })
  // After this pause, all processes encrypt with the new key.
  await delay(2 * fileCheckMs)
  let count = 0
  for (const column of sealedColumns) count += await resealAll(database, keys, column)
  await database.transaction(async (tx) => {
    await holdLock(tx, 'secretKey')
    const all = readKeys(keys.path)
    const used = all.findIndex(({ id }) => id === fresh.id) + 1
    await writeSecretKeys(keys.path, all.slice(0, used + 1))
  })
  return { keyId: fresh.id, count }
}

async function resealAll(
  database: Database,
  keys: SecretKeys,
  { list, update }: (typeof sealedColumns)[number],
): Promise<number> {
  let count = 0
  for (let after: string | undefined = zeroUuid; after; )
    after = await database.transaction(async (tx) => {
      const rows = await list.all(tx, { after: after!, limit: rowsPerTransaction })
      const stale = rows.filter(({ sealed }) => sealedKeyId(sealed) !== keys.newest.id)
      for (const { id, sealed } of stale)
        await update.run(tx, { id, sealed: sealSecret(keys, openSecret(keys, sealed)) })
      count += stale.length
      return rows.at(-1)?.id
    })
  return count
}
