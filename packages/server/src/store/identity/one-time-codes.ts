import { type Queryable, statement, type Tx } from '../database.ts'

const insert = statement<never, [Buffer, 'setup' | 'invite', string | null, number]>(
  'one_time_code_insert',
  `INSERT INTO one_time_codes (code_hash, purpose, user_id, expires_at)
   VALUES ($1, $2, $3, slipway_now() + make_interval(secs => $4))`,
)

const find = statement<{ user_id: string | null }, [Buffer, 'setup' | 'invite']>(
  'one_time_code_find',
  `SELECT user_id FROM one_time_codes
   WHERE code_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > slipway_now()`,
)

// The condition is checked again under the row's lock, so that a code works once.
const redeem = statement<{ user_id: string | null }, [Buffer, 'setup' | 'invite']>(
  'one_time_code_redeem',
  `UPDATE one_time_codes SET used_at = slipway_now()
   WHERE code_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > slipway_now()
   RETURNING user_id`,
)

const findLive = statement<never, [string]>(
  'one_time_code_find_live',
  'SELECT FROM one_time_codes WHERE user_id = $1 AND used_at IS NULL AND expires_at > slipway_now()',
)

const voidInvites = statement<never, [string]>(
  'one_time_codes_void',
  'DELETE FROM one_time_codes WHERE user_id = $1 AND used_at IS NULL',
)

export interface NewOneTimeCode {
  hash: Buffer
  purpose: 'setup' | 'invite'
  userId: string | null
  seconds: number
}

export const insertOneTimeCode = (tx: Tx, code: NewOneTimeCode) =>
  insert.run(tx, code.hash, code.purpose, code.userId, code.seconds)

export const findOneTimeCode = (db: Queryable, hash: Buffer, purpose: 'setup' | 'invite') =>
  find.one(db, hash, purpose)

/** Undefined when there is no such code, or it is used or expired. */
export const redeemOneTimeCode = (tx: Tx, hash: Buffer, purpose: 'setup' | 'invite') =>
  redeem.one(tx, hash, purpose)

export const voidInvitations = (tx: Tx, userId: string) => voidInvites.run(tx, userId)

/** Whether the user has an invitation that still works. */
export const hasInvitation = async (tx: Tx, userId: string) => (await findLive.run(tx, userId)) > 0
