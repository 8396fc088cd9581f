import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

/** A token family, as its user sees it. */
export interface SessionRow {
  id: string
  client_address: string
  user_agent: string
  has_second_factor: boolean
  created_at: Date
  last_used_at: Date
  expires_at: Date
}

/** Lists the user's active sessions. A family without a valid refresh token has ended. */
export const listSessions = statement<SessionRow, { userId: string }>(
  'session_list',
  `SELECT f.id, f.client_address, f.user_agent, f.has_second_factor, f.created_at, f.last_used_at,
          f.expires_at
   FROM token_families f
   WHERE f.user_id = :userId AND f.revoked_at IS NULL AND f.expires_at > sign_in_now()
     AND EXISTS (SELECT FROM refresh_tokens r
                 WHERE r.family_id = f.id AND r.spent_at IS NULL AND r.expires_at > sign_in_now())
   ORDER BY f.last_used_at DESC, f.id DESC`,
).allBy('userId')

const end = statement<never, { userId: string; id: string }>(
  'session_end',
  `UPDATE token_families SET revoked_at = sign_in_now()
   WHERE user_id = :userId AND id = :id AND revoked_at IS NULL`,
)

/** Changes one session of the user, or all of them if `id` is null. */
export const markSecondFactor = statement<never, { userId: string; id: string | null; hasIt: boolean }, Tx>(
  'session_set_second_factor',
  `UPDATE token_families SET has_second_factor = :hasIt
   WHERE user_id = :userId AND (:id::uuid IS NULL OR id = :id) AND revoked_at IS NULL`,
).runBy('userId', 'id', 'hasIt')

/** Returns false if the user has no such session. */
export const endSession = async (tx: Tx, userId: string, id: string) =>
  (await end.run(tx, { userId, id })) === 1
