import type { Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'

const insert = statement<never, NewOneTimeCode>(
  'one_time_code_insert',
  `INSERT INTO one_time_codes (code_hash, purpose, user_id, expires_at)
   VALUES (:hash, :purpose, :userId, slipway_now() + make_interval(secs => :seconds))`,
)

const find = statement<{ user_id: string | null }, { hash: Buffer; purpose: 'setup' | 'invite' }>(
  'one_time_code_find',
  `SELECT user_id FROM one_time_codes
   WHERE code_hash = :hash AND purpose = :purpose AND used_at IS NULL AND expires_at > slipway_now()`,
)

// The condition is checked again under the row's lock, so that a code works once.
const redeem = statement<{ user_id: string | null }, { hash: Buffer; purpose: 'setup' | 'invite' }>(
  'one_time_code_redeem',
  `UPDATE one_time_codes SET used_at = slipway_now()
   WHERE code_hash = :hash AND purpose = :purpose AND used_at IS NULL AND expires_at > slipway_now()
   RETURNING user_id`,
)

const findLive = statement<never, { userId: string }>(
  'one_time_code_find_live',
  'SELECT FROM one_time_codes WHERE user_id = :userId AND used_at IS NULL AND expires_at > slipway_now()',
)

const voidInvites = statement<never, { userId: string }>(
  'one_time_codes_void',
  'DELETE FROM one_time_codes WHERE user_id = :userId AND used_at IS NULL',
)

export interface NewOneTimeCode {
  hash: Buffer
  purpose: 'setup' | 'invite'
  userId: string | null
  seconds: number
}

export const insertOneTimeCode = (tx: Tx, code: NewOneTimeCode) => insert.run(tx, code)

export const findOneTimeCode = (db: Queryable, hash: Buffer, purpose: 'setup' | 'invite') =>
  find.one(db, { hash, purpose })

/** Returns undefined when there is no such code, or it is used or expired. */
export const redeemOneTimeCode = (tx: Tx, hash: Buffer, purpose: 'setup' | 'invite') =>
  redeem.one(tx, { hash, purpose })

export const voidInvitations = (tx: Tx, userId: string) => voidInvites.run(tx, { userId })

/** Returns whether the user has an invitation that still works. */
export const hasInvitation = async (tx: Tx, userId: string) => (await findLive.run(tx, { userId })) > 0
