import { randomBytes } from 'node:crypto'
import { newAccessKey } from '../domain/access-key.ts'
import { uuid } from '../domain/ids.ts'
import { hashSecret, newToken } from '../domain/secret.ts'
import type { Tx } from '../store/database.ts'
import { type AccessKeyRow, insertAccessKey } from '../store/identity/access-keys.ts'
import { insertOneTimeCode, voidInvitations } from '../store/identity/one-time-codes.ts'

const invitationSeconds = 7 * 24 * 3600
const setupSeconds = 30 * 24 * 3600

export type NewKey = { name: string; expiresAt?: Date | null } & (
  | { kind: 'project'; projectId: string; role: 'read' | 'write' }
  | { kind: 'operator' }
)

/** The secret is here and nowhere else. Undefined when the expiry has passed already. */
export async function createAccessKey(
  tx: Tx,
  key: NewKey,
): Promise<{ row: AccessKeyRow; secret: string } | undefined> {
  const { text, prefix } = newAccessKey(randomBytes)
  const row = await insertAccessKey(tx, {
    id: uuid(),
    kind: key.kind,
    projectId: key.kind === 'project' ? key.projectId : null,
    name: key.name,
    role: key.kind === 'project' ? key.role : 'write',
    prefix: `slp_${prefix}`,
    secretHash: hashSecret(text),
    expiresAt: key.expiresAt ?? null,
  })
  return row && { row, secret: text }
}

/** A code that lets the invited user choose a password. Earlier ones of the same user no longer work. */
export async function createInvitation(tx: Tx, userId: string): Promise<string> {
  await voidInvitations(tx, userId)
  const code = newToken('code')
  await insertOneTimeCode(tx, {
    hash: hashSecret(code),
    purpose: 'invite',
    userId,
    seconds: invitationSeconds,
  })
  return code
}

/** A code that makes whoever redeems it the first operator. */
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
