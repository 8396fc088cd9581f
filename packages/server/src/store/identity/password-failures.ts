import type { Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'

const windowSeconds = 60

// One attempt at a time counts itself in, so that many at once cannot all find the count below the limit.
const lock = statement<never, { key: string }>(
  'password_failures_lock',
  'SELECT pg_advisory_xact_lock(hashtextextended(:key, 43))',
)

const recent = statement<
  { count: number; oldest_seconds_ago: number | null },
  { email: string; address: string }
>(
  'password_failures_recent',
  `SELECT count(*) AS count, extract(epoch FROM slipway_now() - min(failed_at))::float8 AS oldest_seconds_ago
   FROM password_failures
   WHERE email = :email AND address = :address AND failed_at > slipway_now() - make_interval(secs => ${windowSeconds})`,
)

const insert = statement<never, { email: string; address: string }>(
  'password_failure_insert',
  'INSERT INTO password_failures (email, address) VALUES (:email, :address)',
)

const clear = statement<never, { email: string; address: string }>(
  'password_failures_clear',
  'DELETE FROM password_failures WHERE email = :email AND address = :address',
)

/**
 * Counts an attempt as failed before it is made; a success clears the count. Returns the seconds to wait when the
 * last minute has had as many as allowed, else 0.
 */
export async function reservePasswordAttempt(
  tx: Tx,
  email: string,
  address: string,
  mostPerMinute: number,
): Promise<number> {
  await lock.run(tx, { key: `${email} ${address}` })
  const row = await recent.one(tx, { email, address })
  if (row && row.count >= mostPerMinute)
    return Math.max(1, Math.ceil(windowSeconds - (row.oldest_seconds_ago ?? 0)))
  await insert.run(tx, { email, address })
  return 0
}

export const clearPasswordFailures = (db: Queryable, email: string, address: string) =>
  clear.run(db, { email, address })
