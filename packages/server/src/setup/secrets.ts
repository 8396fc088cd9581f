import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { ConfigError } from '../config/index.ts'
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
import { lookMs, readKeys, type SecretKeyFile, writeSecretKeys } from './secret-key-file.ts'

const batch = 100
const beforeAllIds = '00000000-0000-0000-0000-000000000000'

/** Refuses a process that does not have the key of this database. The first process decides which key that is. */
export async function prepareSecrets(database: Database, keys: SecretKeyFile): Promise<void> {
  await database.transaction(async (tx) => {
    await holdLock(tx, 'secretKey')
    const wanted = await findSecretKeyId(tx)
    if (wanted === undefined) return setSecretKeyId(tx, keys.newest.id)
    if (!keys.find(wanted))
      throw new ConfigError(
        `${keys.path}: this database's secrets are sealed under the secret key ${wanted}, and this file holds ${keys.ids.join(', ')}: give this process the file of the others (SLIPWAY_SECRET_KEY_FILE)`,
      )
  })
}

/**
 * Makes a new key and seals everything anew under it, while other processes go on working: they find the new key in the
 * file, and the old one stays there for what they sealed in the last moment. Interrupted anywhere, it can be run again.
 * Returns the new key's id and how many secrets were sealed anew.
 */
export async function rotateSecretKey(
  database: Database,
  keys: SecretKeyFile,
): Promise<{ keyId: string; count: number }> {
  const fresh = secretKeyOf(randomBytes(secretKeyBytes))
  // Under a lock, so that two who rotate at once keep each other's keys.
  await database.transaction(async (tx) => {
    await holdLock(tx, 'secretKey')
    await writeSecretKeys(keys.path, [fresh, ...readKeys(keys.path)])
    await setSecretKeyId(tx, fresh.id)
  })
  // From then on everyone who runs seals under the new key, we too.
  await delay(2 * lookMs)
  let count = 0
  for (const column of sealedColumns) count += await sealAnew(database, keys, column)
  await database.transaction(async (tx) => {
    await holdLock(tx, 'secretKey')
    const all = readKeys(keys.path)
    const used = all.findIndex(({ id }) => id === fresh.id) + 1
    await writeSecretKeys(keys.path, all.slice(0, used + 1))
  })
  return { keyId: fresh.id, count }
}

async function sealAnew(
  database: Database,
  keys: SecretKeys,
  { list, update }: (typeof sealedColumns)[number],
): Promise<number> {
  let count = 0
  let after: string | undefined = beforeAllIds
  while (after !== undefined) {
    const page: { last: string | undefined; changed: number } = await database.transaction(async (tx) => {
      const rows = await list.all(tx, { after: after!, most: batch })
      const stale = rows.filter(({ sealed }) => sealedKeyId(sealed) !== keys.newest.id)
      for (const { id, sealed } of stale)
        await update.run(tx, { id, sealed: sealSecret(keys, openSecret(keys, sealed)) })
      return { last: rows.at(-1)?.id, changed: stale.length }
    })
    count += page.changed
    after = page.last
  }
  return count
}
