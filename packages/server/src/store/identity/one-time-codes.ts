import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

type Purpose = 'setup' | 'reset'

interface OneTimeCodeRow {
  user_id: string | null
  is_mailed: boolean
  expires_at: Date
}

const insert = statement<OneTimeCodeRow, Required<NewOneTimeCode>>(
  'one_time_code_insert',
  `INSERT INTO one_time_codes (code_hash, purpose, user_id, is_mailed, expires_at)
   VALUES (:hash, :purpose, :userId, :isMailed, sign_in_now() + make_interval(secs => :seconds)) RETURNING *`,
)

export const findOneTimeCode = statement<OneTimeCodeRow, { hash: Buffer; purpose: Purpose }>(
  'one_time_code_find',
  `SELECT * FROM one_time_codes
   WHERE code_hash = :hash AND purpose = :purpose AND used_at IS NULL AND expires_at > sign_in_now()`,
).oneBy('hash', 'purpose')

/**
 * Returns undefined if there is no such code, or if it is used or expired. PostgreSQL checks the condition
 * again under the row's lock, so that a code works once.
 */
export const redeemOneTimeCode = statement<OneTimeCodeRow, { hash: Buffer; purpose: Purpose }, Tx>(
  'one_time_code_redeem',
  `UPDATE one_time_codes SET used_at = sign_in_now()
   WHERE code_hash = :hash AND purpose = :purpose AND used_at IS NULL AND expires_at > sign_in_now()
   RETURNING *`,
).oneBy('hash', 'purpose')

export const deleteResetCodes = statement<never, { userId: string }, Tx>(
  'one_time_codes_delete_resets',
  `DELETE FROM one_time_codes WHERE user_id = :userId AND purpose = 'reset' AND used_at IS NULL`,
).runBy('userId')

// Limits resets to one mail a minute, so that a mailbox cannot be flooded.
const fresh = statement<never, { userId: string }>(
  'one_time_code_fresh_reset',
  `SELECT FROM one_time_codes WHERE user_id = :userId AND purpose = 'reset' AND used_at IS NULL
     AND created_at > sign_in_now() - interval '1 minute'`,
)

interface NewOneTimeCode {
  hash: Buffer
  purpose: Purpose
  userId: string | null
  seconds: number
  isMailed?: boolean
}

export const insertOneTimeCode = async (tx: Tx, code: NewOneTimeCode): Promise<OneTimeCodeRow> =>
  (await insert.one(tx, { isMailed: false, ...code }))!

/** Returns whether a reset was requested within the last minute. */
export const hasFreshResetCode = async (tx: Tx, userId: string) => (await fresh.run(tx, { userId })) > 0
