import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Finding, ok, problem } from '../engines/incus/operate/finding.ts'
import { readKeys, type SecretKeyLocation } from '../setup/secret-key-file.ts'

/**
 * `neededKeyId` is the id of the key that encrypts the secrets in the database; null if there are none yet.
 */
export function secretKeyFinding(
  { secretKeyFile, dataDir }: SecretKeyLocation,
  neededKeyId: string | null,
): Finding {
  const step = 'secret key'
  const path = secretKeyFile || join(dataDir, 'secret.key')
  if (!existsSync(path)) {
    if (neededKeyId === null && secretKeyFile === '')
      return ok(step, 'the first start creates the key; then copy the key to a safe place')
    return problem(
      step,
      `${path} does not exist${neededKeyId ? `, but secrets are encrypted with the key ${neededKeyId}` : ''}`,
      'restore the key from your backup, or set SLIPWAY_SECRET_KEY_FILE',
    )
  }
  if ((statSync(path).mode & 0o007) !== 0)
    return problem(step, `other users can read ${path}`, `chmod 600 ${path}`)
  try {
    const ids = readKeys(path).map(({ id }) => id)
    return neededKeyId === null || ids.includes(neededKeyId)
      ? ok(step, `${path} matches the database; keep a copy of it, separate from database backups`)
      : problem(
          step,
          `${path} contains ${ids.join(', ')}, but secrets are encrypted with ${neededKeyId}`,
          'use the same file as the other processes of this database',
        )
  } catch (error) {
    return problem(step, (error as Error).message, 'restore the file from your backup')
  }
}
