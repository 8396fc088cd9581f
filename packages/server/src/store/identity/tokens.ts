import { type Queryable, statement, type Tx } from '../database.ts'

const insertFamily = statement<never, [string, string]>(
  'token_family_insert',
  'INSERT INTO token_families (id, user_id) VALUES ($1, $2)',
)

const insertPair = statement<never, [string, Buffer, number, Buffer, number]>(
  'token_pair_insert',
  `WITH access AS (
     INSERT INTO access_tokens (token_hash, family_id, expires_at)
     VALUES ($2, $1, slipway_now() + make_interval(secs => $3))
   )
   INSERT INTO refresh_tokens (token_hash, family_id, expires_at)
   VALUES ($4, $1, slipway_now() + make_interval(secs => $5))`,
)

// The family is locked before the token is read: of two uses of one token the second sees what the first did.
const lockFamily = statement<{ id: string; is_ended: boolean }, [Buffer]>(
  'token_family_lock',
  `SELECT f.id, f.revoked_at IS NOT NULL OR u.suspended_at IS NOT NULL AS is_ended
   FROM token_families f JOIN refresh_tokens r ON r.family_id = f.id JOIN users u ON u.id = f.user_id
   WHERE r.token_hash = $1 FOR UPDATE OF f`,
)

export interface RefreshTokenRow {
  is_expired: boolean
  is_spent: boolean
  spent_seconds_ago: number | null
  successor_sealed: Buffer | null
  is_successor_spent: boolean | null
}

const findRefresh = statement<RefreshTokenRow, [Buffer]>(
  'refresh_token_find',
  `SELECT r.expires_at <= slipway_now() AS is_expired,
          r.spent_at IS NOT NULL AS is_spent,
          extract(epoch FROM slipway_now() - r.spent_at)::float8 AS spent_seconds_ago,
          r.successor_sealed,
          next.spent_at IS NOT NULL AS is_successor_spent
   FROM refresh_tokens r LEFT JOIN refresh_tokens next ON next.token_hash = r.successor_hash
   WHERE r.token_hash = $1`,
)

const spend = statement<never, [Buffer, Buffer, Buffer]>(
  'refresh_token_spend',
  `UPDATE refresh_tokens SET spent_at = slipway_now(), successor_hash = $2, successor_sealed = $3
   WHERE token_hash = $1 AND spent_at IS NULL`,
)

const revoke = statement<never, [string]>(
  'token_family_revoke',
  'UPDATE token_families SET revoked_at = slipway_now() WHERE id = $1 AND revoked_at IS NULL',
)

const revokeByToken = statement<{ user_id: string }, [Buffer]>(
  'token_family_revoke_by_token',
  `UPDATE token_families SET revoked_at = slipway_now()
   WHERE id = (SELECT family_id FROM refresh_tokens WHERE token_hash = $1) AND revoked_at IS NULL RETURNING user_id`,
)

const revokeOfUser = statement<never, [string, string | null]>(
  'token_families_revoke_of_user',
  `UPDATE token_families SET revoked_at = slipway_now()
   WHERE user_id = $1 AND revoked_at IS NULL AND id IS DISTINCT FROM $2::uuid`,
)

// A token past its expiry is refused with or without its row. A family goes when it has no token left.
const prune = statement<never>(
  'tokens_prune',
  `WITH access AS (DELETE FROM access_tokens WHERE expires_at < slipway_now() - interval '1 hour'),
        refresh AS (DELETE FROM refresh_tokens WHERE expires_at < slipway_now() - interval '1 hour')
   DELETE FROM token_families f
   WHERE f.created_at < slipway_now() - interval '1 day'
     AND NOT EXISTS (SELECT FROM refresh_tokens r WHERE r.family_id = f.id)
     AND NOT EXISTS (SELECT FROM access_tokens a WHERE a.family_id = f.id)`,
)

export const insertTokenFamily = (tx: Tx, id: string, userId: string) => insertFamily.run(tx, id, userId)

export interface NewTokenPair {
  familyId: string
  accessHash: Buffer
  accessSeconds: number
  refreshHash: Buffer
  refreshSeconds: number
}

export const insertTokenPair = (tx: Tx, pair: NewTokenPair) =>
  insertPair.run(
    tx,
    pair.familyId,
    pair.accessHash,
    pair.accessSeconds,
    pair.refreshHash,
    pair.refreshSeconds,
  )

export const lockTokenFamily = (tx: Tx, refreshHash: Buffer) => lockFamily.one(tx, refreshHash)

/** Only under the family's lock. */
export const findRefreshToken = (tx: Tx, hash: Buffer) => findRefresh.one(tx, hash)

export const spendRefreshToken = (tx: Tx, hash: Buffer, successorHash: Buffer, successorSealed: Buffer) =>
  spend.run(tx, hash, successorHash, successorSealed)

export const revokeTokenFamily = (db: Queryable, familyId: string) => revoke.run(db, familyId)

/** Answers whose it was, if it was anybody's. */
export const revokeTokenFamilyOf = (db: Queryable, refreshHash: Buffer) => revokeByToken.one(db, refreshHash)

export const revokeTokenFamiliesOfUser = (tx: Tx, userId: string, exceptFamilyId: string | null = null) =>
  revokeOfUser.run(tx, userId, exceptFamilyId)

export const pruneTokens = (db: Queryable) => prune.run(db)
