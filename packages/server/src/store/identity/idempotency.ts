import type { Queryable } from '../database.ts'
import { statement } from '../statement.ts'

// The lock is held until the transaction ends: whoever finds it taken knows that the first request is still under way.
const lockKey = statement<{ is_locked: boolean }, { key: string }>(
  'idempotency_lock',
  'SELECT pg_try_advisory_xact_lock(hashtextextended(:key, 42)) AS is_locked',
)

const remembered = statement<
  { request_hash: Buffer; answer_sealed: Buffer },
  { caller: string; keyHash: Buffer }
>(
  'idempotency_find',
  `SELECT request_hash, answer_sealed FROM idempotency_keys
   WHERE caller = :caller AND key_hash = :keyHash AND created_at > slipway_now() - interval '24 hours'`,
)

const remember = statement<
  never,
  { caller: string; keyHash: Buffer; requestHash: Buffer; answerSealed: Buffer }
>(
  'idempotency_remember',
  `INSERT INTO idempotency_keys (caller, key_hash, request_hash, answer_sealed)
   VALUES (:caller, :keyHash, :requestHash, :answerSealed)
   ON CONFLICT (caller, key_hash) DO UPDATE
   SET request_hash = excluded.request_hash, answer_sealed = excluded.answer_sealed, created_at = slipway_now()`,
)

export async function lockIdempotencyKey(db: Queryable, caller: string, keyHash: Buffer): Promise<boolean> {
  return (await lockKey.one(db, { key: `${caller} ${keyHash.toString('hex')}` }))?.is_locked ?? false
}

export function findIdempotentAnswer(db: Queryable, caller: string, keyHash: Buffer) {
  return remembered.one(db, { caller, keyHash })
}

export async function rememberAnswer(
  db: Queryable,
  caller: string,
  keyHash: Buffer,
  requestHash: Buffer,
  answerSealed: Buffer,
): Promise<void> {
  await remember.run(db, { caller, keyHash, requestHash, answerSealed })
}
