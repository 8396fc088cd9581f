import { randomBytes } from 'node:crypto'
import { newAccessKey, signingSecretOf } from '../domain/access-key.ts'
import { uuid } from '../domain/ids.ts'
import { hashSecret, newToken } from '../domain/secret.ts'
import { type SecretKeys, sealSecret } from '../domain/secret-key.ts'
import type { Tx } from '../postgres/database.ts'
import {
  type AccessKeyRow,
  insertAccessKey,
  type KeyRole,
  type KeyScope,
} from '../store/identity/access-keys.ts'
import { insertOneTimeCode } from '../store/identity/one-time-codes.ts'

const setupSeconds = 24 * 3600

export interface NewKey {
  scope: KeyScope
  name: string
  role: KeyRole
  createdBy: string | null
  /** The key that creates the new key. */
  parentId?: string | null
  expiresAt?: Date | null
  allowedCidrs?: string[]
  /** If set, the new key is a signing key, and is stored encrypted with the newest of these secret keys. */
  sealedWith?: SecretKeys | undefined
}

/**
 * Returns the key with its secret; undefined if the expiry is in the past. Only a hash of the secret is
 * stored, unless the key is a signing key.
 */
export async function createAccessKey(
  tx: Tx,
  { scope, name, role, createdBy, parentId = null, expiresAt = null, allowedCidrs = [], sealedWith }: NewKey,
): Promise<{ row: AccessKeyRow; secret: string } | undefined> {
  const { text, prefix } = newAccessKey(randomBytes)
  const row = await insertAccessKey(tx, {
    ...scope,
    id: uuid(),
    kind: scope.projectId ? 'project' : scope.organizationId ? 'organization' : 'operator',
    name,
    role,
    prefix: `slp_${prefix}`,
    secretHash: hashSecret(text),
    createdBy,
    parentId,
    expiresAt,
    allowedCidrs,
    signingSealed: sealedWith ? sealSecret(sealedWith, text) : null,
  })
  return row && { row, secret: sealedWith ? signingSecretOf(text) : text }
}

/** Creates the code for setting up the first operator account. */
export async function createSetupCode(tx: Tx): Promise<string> {
  const code = newToken('code')
  await insertOneTimeCode(tx, {
    hash: hashSecret(code),
    purpose: 'setup',
    userId: null,
    seconds: setupSeconds,
  })
  return code
}
