import { type Failures, type SignInLimits, secondsToWait } from '../../domain/sign-in/limits.ts'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

interface Attempt {
  /** Empty for an attempt with a code, because its user is not known yet. */
  email: string
  /** The client's IPv4 address or IPv6 /64, from `clientOf`. */
  address: string
}

// Attempts are counted one after another, so that concurrent attempts cannot all see counts below the limits.
// The client's address is always locked before the e-mail address.
const lock = statement<never, { key: string }>(
  'password_failures_lock',
  'SELECT pg_advisory_xact_lock(hashtextextended(:key, 43))',
)

// Attempts over a limit are not inserted, so there are few rows to count.
const recent = statement<Failures, Attempt>(
  'password_failures_recent',
  `SELECT a.*, e.*,
          EXISTS (SELECT FROM users u JOIN known_addresses k ON k.user_id = u.id
                  WHERE u.email = :email AND u.password_hash IS NOT NULL AND k.address = :address
                    AND k.signed_in_at > sign_in_now() - interval '30 days') AS is_known_address
   FROM (SELECT count(*) FILTER (WHERE email = :email) AS pair,
                extract(epoch FROM sign_in_now() - min(failed_at) FILTER (WHERE email = :email))::float8
                  AS pair_oldest_seconds_ago,
                count(*) AS address,
                extract(epoch FROM sign_in_now() - min(failed_at))::float8 AS address_oldest_seconds_ago
         FROM password_failures
         WHERE address = :address AND failed_at > sign_in_now() - interval '1 minute') a,
        (SELECT count(*) AS email,
                extract(epoch FROM sign_in_now() - max(failed_at))::float8 AS email_newest_seconds_ago
         FROM password_failures
         WHERE email = :email AND :email <> '' AND failed_at > sign_in_now() - interval '1 hour') e`,
)

const insert = statement<{ id: number }, Attempt>(
  'password_failure_insert',
  'INSERT INTO password_failures (email, address) VALUES (:email, :address) RETURNING id',
)

/** Removes one attempt that succeeded. Earlier attempts still count. */
export const releasePasswordAttempt = statement<never, { id: number }>(
  'password_failure_release',
  'DELETE FROM password_failures WHERE id = :id',
).runBy('id')

/** Deletes a user's failures from an address after the user has signed in from there. */
export const clearPasswordFailures = statement<never, Attempt>(
  'password_failures_clear',
  'DELETE FROM password_failures WHERE email = :email AND address = :address',
).runBy('email', 'address')

export const putKnownAddress = statement<never, { userId: string; address: string }, Tx>(
  'known_address_put',
  `INSERT INTO known_addresses (user_id, address) VALUES (:userId, :address)
   ON CONFLICT (user_id, address) DO UPDATE SET signed_in_at = sign_in_now()`,
).runBy('userId', 'address')

/** Counts an attempt as failed before it is made, or returns how long to wait. */
export async function reservePasswordAttempt(
  tx: Tx,
  attempt: Attempt,
  limits: SignInLimits,
): Promise<{ id: number; waitSeconds: 0 } | { waitSeconds: number }> {
  await lock.run(tx, { key: `address ${attempt.address}` })
  if (attempt.email !== '') await lock.run(tx, { key: `e-mail ${attempt.email}` })
  const waitSeconds = secondsToWait((await recent.one(tx, attempt))!, limits)
  if (waitSeconds > 0) return { waitSeconds }
  return { id: (await insert.one(tx, attempt))!.id, waitSeconds: 0 }
}
