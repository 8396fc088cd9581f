import { randomBytes } from 'node:crypto'
import { newAccessKey } from '../domain/access-key.ts'
import { uuid } from '../domain/ids.ts'
import { hashSecret, newToken } from '../domain/secret.ts'
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
  /** The key that creates this one. */
  parentId?: string | null
  expiresAt?: Date | null
  allowedCidrs?: string[]
}

/** Returns the key with its secret, which is not stored; undefined if the expiry is in the past. */
export async function createAccessKey(
  tx: Tx,
  { scope, name, role, createdBy, parentId = null, expiresAt = null, allowedCidrs = [] }: NewKey,
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
  })
  return row && { row, secret: text }
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
