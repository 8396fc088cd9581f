import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

const maxSessionsPerUser = 100
/** Only this many spent refresh tokens are kept for each session. Older ones are treated as unknown. */
const maxSpentTokensPerSession = 1_000

interface NewTokenFamily {
  id: string
  userId: string
  address: string
  userAgent: string
  hasSecondFactor: boolean
  /** The maximum duration of the session, even if it is refreshed. */
  maxAgeS: number
  /** The single sign-on provider, and its sealed tokens if its claims can be read again. */
  oidcProvider: string | null
  oidcSealed: Buffer | null
}

/** A user has at most 100 sessions; the least recently used ones end. */
export const insertTokenFamily = statement<never, NewTokenFamily, Tx>(
  'token_family_insert',
  `WITH ended AS (
     UPDATE token_families SET revoked_at = sign_in_now() WHERE id IN (
       SELECT id FROM token_families WHERE user_id = :userId AND revoked_at IS NULL
       ORDER BY last_used_at DESC, id DESC OFFSET ${maxSessionsPerUser - 1}))
   INSERT INTO token_families (id, user_id, client_address, user_agent, has_second_factor, expires_at, oidc_provider,
                               oidc_sealed)
   VALUES (:id, :userId, :address, :userAgent, :hasSecondFactor, sign_in_now() + make_interval(secs => :maxAgeS),
           :oidcProvider, :oidcSealed)`,
).run

export const touchTokenFamily = statement<never, { id: string; address: string }, Tx>(
  'token_family_touch',
  'UPDATE token_families SET last_used_at = sign_in_now(), client_address = :address WHERE id = :id',
).runBy('id', 'address')

// No token outlives its family.
const insertPair = statement<{ access_seconds: number }, NewTokenPair, Tx>(
  'token_pair_insert',
  `WITH family AS (SELECT id, expires_at FROM token_families WHERE id = :familyId),
        access AS (
          INSERT INTO access_tokens (token_hash, family_id, expires_at)
          SELECT :accessHash, id, least(expires_at, sign_in_now() + make_interval(secs => :accessSeconds)) FROM family
          RETURNING expires_at),
        refresh AS (
          INSERT INTO refresh_tokens (token_hash, family_id, expires_at)
          SELECT :refreshHash, id, least(expires_at, sign_in_now() + make_interval(secs => :refreshSeconds)) FROM family)
   SELECT extract(epoch FROM expires_at - sign_in_now())::float8 AS access_seconds FROM access`,
)

/** Returns the number of seconds for which the access token is valid. */
export const insertTokenPair = async (tx: Tx, pair: NewTokenPair): Promise<number> =>
  (await insertPair.one(tx, pair))!.access_seconds

/**
 * Lock the family before reading the token, so that the second use of a token sees the effect of the first.
 */
export const lockTokenFamily = statement<
  { id: string; user_id: string; is_ended: boolean },
  { refreshHash: Buffer },
  Tx
>(
  'token_family_lock',
  `SELECT f.id, f.user_id,
          f.revoked_at IS NOT NULL OR f.expires_at <= sign_in_now() OR u.suspended_at IS NOT NULL AS is_ended
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

/** The caller has locked the family. */
export const findRefreshToken = statement<RefreshTokenRow, { hash: Buffer }, Tx>(
  'refresh_token_find',
  `SELECT r.expires_at <= sign_in_now() AS is_expired,
          r.spent_at IS NOT NULL AS is_spent,
          extract(epoch FROM sign_in_now() - r.spent_at)::float8 AS spent_seconds_ago,
          r.successor_sealed,
          next.spent_at IS NOT NULL AS is_successor_spent
   FROM refresh_tokens r LEFT JOIN refresh_tokens next ON next.token_hash = r.successor_hash
   WHERE r.token_hash = :hash`,
).oneBy('hash')

/** Also deletes the oldest spent tokens above the limit. */
export const spendRefreshToken = statement<
  never,
  { hash: Buffer; successorHash: Buffer; successorSealed: Buffer },
  Tx
>(
  'refresh_token_spend',
  `WITH spent AS (
     UPDATE refresh_tokens
     SET spent_at = sign_in_now(), successor_hash = :successorHash, successor_sealed = :successorSealed
     WHERE token_hash = :hash AND spent_at IS NULL RETURNING family_id)
   DELETE FROM refresh_tokens WHERE token_hash IN (
     SELECT r.token_hash FROM refresh_tokens r
     WHERE r.family_id = (SELECT family_id FROM spent) AND r.spent_at IS NOT NULL
     ORDER BY r.spent_at DESC OFFSET ${maxSpentTokensPerSession - 1})`,
).runBy('hash', 'successorHash', 'successorSealed')

/**
 * Removes the provider's tokens from the session of an unspent refresh token and returns them. Only one of
 * several concurrent requests gets them, because the provider may accept them only once. That request stores
 * the next tokens.
 */
export const takeProviderTokens = statement<
  { id: string; user_id: string; oidc_provider: string; oidc_sealed: Buffer },
  { refreshHash: Buffer }
>(
  'token_family_take_oidc',
  `WITH family AS (
     SELECT f.id, f.oidc_sealed FROM token_families f JOIN refresh_tokens r ON r.family_id = f.id
     WHERE r.token_hash = :refreshHash AND r.spent_at IS NULL AND r.expires_at > sign_in_now()
       AND f.oidc_sealed IS NOT NULL AND f.revoked_at IS NULL AND f.expires_at > sign_in_now()
     FOR UPDATE OF f)
   UPDATE token_families f SET oidc_sealed = NULL FROM family
   WHERE f.id = family.id RETURNING f.id, f.user_id, f.oidc_provider, family.oidc_sealed`,
).oneBy('refreshHash')

export const putProviderTokens = statement<never, { familyId: string; sealed: Buffer | null }, Tx>(
  'token_family_put_oidc',
  'UPDATE token_families SET oidc_sealed = :sealed WHERE id = :familyId',
).runBy('familyId', 'sealed')

export const revokeTokenFamily = statement<never, { familyId: string }>(
  'token_family_revoke',
  'UPDATE token_families SET revoked_at = sign_in_now() WHERE id = :familyId AND revoked_at IS NULL',
).runBy('familyId')

/** Returns the user of the family, or undefined if there is no active family with this token. */
export const revokeTokenFamilyOf = statement<{ user_id: string }, { refreshHash: Buffer }>(
  'token_family_revoke_by_token',
  `UPDATE token_families SET revoked_at = sign_in_now()
   WHERE id = (SELECT family_id FROM refresh_tokens WHERE token_hash = :refreshHash)
     AND revoked_at IS NULL RETURNING user_id`,
).oneBy('refreshHash')

const revokeOfUser = statement<never, { userId: string; exceptFamilyId: string | null }>(
  'token_families_revoke_of_user',
  `UPDATE token_families SET revoked_at = sign_in_now()
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
