import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

interface NewTokenFamily {
  id: string
  userId: string
  address: string
  userAgent: string
  hasSecondFactor: boolean
}

export const insertTokenFamily = statement<never, NewTokenFamily, Tx>(
  'token_family_insert',
  `INSERT INTO token_families (id, user_id, client_address, user_agent, has_second_factor)
   VALUES (:id, :userId, :address, :userAgent, :hasSecondFactor)`,
).run

export const touchTokenFamily = statement<never, { id: string; address: string }, Tx>(
  'token_family_touch',
  'UPDATE token_families SET last_used_at = slipway_now(), client_address = :address WHERE id = :id',
).runBy('id', 'address')

export const insertTokenPair = statement<never, NewTokenPair, Tx>(
  'token_pair_insert',
  `WITH access AS (
     INSERT INTO access_tokens (token_hash, family_id, expires_at)
     VALUES (:accessHash, :familyId, slipway_now() + make_interval(secs => :accessSeconds))
   )
   INSERT INTO refresh_tokens (token_hash, family_id, expires_at)
   VALUES (:refreshHash, :familyId, slipway_now() + make_interval(secs => :refreshSeconds))`,
).run

/** The family is locked before the token is read, so that the second use of a token sees the effect of the first. */
export const lockTokenFamily = statement<
  { id: string; user_id: string; is_ended: boolean },
  { refreshHash: Buffer },
  Tx
>(
  'token_family_lock',
  `SELECT f.id, f.user_id, f.revoked_at IS NOT NULL OR u.suspended_at IS NOT NULL AS is_ended
   FROM token_families f JOIN refresh_tokens r ON r.family_id = f.id JOIN users u ON u.id = f.user_id
   WHERE r.token_hash = :refreshHash FOR UPDATE OF f`,
).oneBy('refreshHash')

interface RefreshTokenRow {
  is_expired: boolean
  is_spent: boolean
  spent_seconds_ago: number | null
  successor_sealed: Buffer | null
  is_successor_spent: boolean | null
}

/** The caller holds the family's lock. */
export const findRefreshToken = statement<RefreshTokenRow, { hash: Buffer }, Tx>(
  'refresh_token_find',
  `SELECT r.expires_at <= slipway_now() AS is_expired,
          r.spent_at IS NOT NULL AS is_spent,
          extract(epoch FROM slipway_now() - r.spent_at)::float8 AS spent_seconds_ago,
          r.successor_sealed,
          next.spent_at IS NOT NULL AS is_successor_spent
   FROM refresh_tokens r LEFT JOIN refresh_tokens next ON next.token_hash = r.successor_hash
   WHERE r.token_hash = :hash`,
).oneBy('hash')

export const spendRefreshToken = statement<
  never,
  { hash: Buffer; successorHash: Buffer; successorSealed: Buffer },
  Tx
>(
  'refresh_token_spend',
  `UPDATE refresh_tokens
   SET spent_at = slipway_now(), successor_hash = :successorHash, successor_sealed = :successorSealed
   WHERE token_hash = :hash AND spent_at IS NULL`,
).runBy('hash', 'successorHash', 'successorSealed')

export const revokeTokenFamily = statement<never, { familyId: string }>(
  'token_family_revoke',
  'UPDATE token_families SET revoked_at = slipway_now() WHERE id = :familyId AND revoked_at IS NULL',
).runBy('familyId')

/** Returns the user of the family, or undefined if there is no active family with this token. */
export const revokeTokenFamilyOf = statement<{ user_id: string }, { refreshHash: Buffer }>(
  'token_family_revoke_by_token',
  `UPDATE token_families SET revoked_at = slipway_now()
   WHERE id = (SELECT family_id FROM refresh_tokens WHERE token_hash = :refreshHash)
     AND revoked_at IS NULL RETURNING user_id`,
).oneBy('refreshHash')

const revokeOfUser = statement<never, { userId: string; exceptFamilyId: string | null }>(
  'token_families_revoke_of_user',
  `UPDATE token_families SET revoked_at = slipway_now()
   WHERE user_id = :userId AND revoked_at IS NULL AND id IS DISTINCT FROM :exceptFamilyId::uuid`,
)

interface NewTokenPair {
  familyId: string
  accessHash: Buffer
  accessSeconds: number
  refreshHash: Buffer
  refreshSeconds: number
}

export const revokeTokenFamiliesOfUser = (tx: Tx, userId: string, exceptFamilyId: string | null = null) =>
  revokeOfUser.run(tx, { userId, exceptFamilyId })
