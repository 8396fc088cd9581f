import { isAddressBlock, isBlockInside } from '../domain/address-blocks.ts'
import { Failure, invalidField } from '../domain/failure.ts'
import type { SecretKeys } from '../domain/secret-key.ts'
import type { Tx } from '../postgres/database.ts'
import { time } from '../postgres/time.ts'
import { type AccessKeyRow, lockParentKey, revokeDescendantsOnce } from '../store/identity/access-keys.ts'

/** The creator of a key: a signed-in user, or a key, which is then the parent of the new key. */
export interface KeyCreator {
  /** The signed-in user, or the user who created the parent key. */
  userId: string | null
  keyId: string | null
}

export interface KeyRequest {
  name: string
  expires_at?: string
  allowed_cidrs?: string[]
  /** Set for a signing key. */
  sealedWith?: SecretKeys | undefined
}

/**
 * Locks the parent of a new key, so that a concurrent revocation of the parent waits and then also revokes the new key.
 * Returns null if a user creates the key.
 */
export async function lockParent(tx: Tx, { keyId }: KeyCreator): Promise<AccessKeyRow | null> {
  if (keyId === null) return null
  const parent = await lockParentKey(tx, keyId)
  if (!parent) throw new Failure('unauthenticated', 'This credential is unknown, revoked or expired.')
  return parent
}

/** Returns the limits of a new key. A limit of the parent applies if the request has none; a wider limit is refused. */
export function limitsOf(
  parent: AccessKeyRow | null,
  request: KeyRequest,
): { expiresAt: Date | null; allowedCidrs: string[] } {
  return { expiresAt: expiryOf(parent, request), allowedCidrs: blocksOf(parent, request) }
}

function expiryOf(parent: AccessKeyRow | null, { expires_at }: KeyRequest): Date | null {
  const latest = parent?.expires_at ?? null
  if (expires_at === undefined) return latest
  const expiresAt = new Date(expires_at)
  if (Number.isNaN(expiresAt.getTime()))
    throw invalidField('expires_at', 'is not a valid time; expected, for example, 2026-12-31T00:00:00Z')
  if (latest && expiresAt > latest)
    throw invalidField('expires_at', `must not be after ${time(latest)}, when the parent key expires`)
  return expiresAt
}

function blocksOf(parent: AccessKeyRow | null, { allowed_cidrs }: KeyRequest): string[] {
  const outer = parent?.allowed_cidrs ?? []
  const blocks = allowed_cidrs ?? outer
  for (const [i, block] of blocks.entries())
    if (!isAddressBlock(block))
      throw invalidField(
        `allowed_cidrs/${i}`,
        'must be an address or a CIDR block, such as 10.0.0.0/8 or fd00::/8',
      )
  if (outer.length === 0) return blocks
  const limit = `the parent key works only from ${outer.join(', ')}`
  if (blocks.length === 0) throw invalidField('allowed_cidrs', `must not be empty: ${limit}`)
  const wider = blocks.findIndex((block) => !outer.some((each) => isBlockInside(block, each)))
  if (wider >= 0) throw invalidField(`allowed_cidrs/${wider}`, `is too wide: ${limit}`)
  return blocks
}

/**
 * Revokes the keys that the key created, directly or through other keys. While the statement waits for the lock of a parent
 * key, another transaction may commit a child of that key, so the statement is repeated until it finds no keys.
 */
export async function revokeDescendants(tx: Tx, id: string): Promise<AccessKeyRow[]> {
  const all: AccessKeyRow[] = []
  for (;;) {
    const revoked = await revokeDescendantsOnce(tx, id)
    if (revoked.length === 0) return all
    all.push(...revoked)
  }
}
