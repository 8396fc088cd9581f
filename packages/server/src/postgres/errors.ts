import pg from 'pg'

/**
 * Thrown to retry the whole transaction, for example because another transaction took what this one had chosen,
 * or because a request must leave its batch.
 */
export class TryAgain extends Error {}

/** The connection broke during the commit, which may or may not have taken place. */
export class UnknownOutcome extends Error {}

/** All connections were in use for too long. */
export class PoolExhausted extends Error {}

/** The error code of `assert_or_abort`: the state has changed since it was read. */
const assertionFailed = 'SL001'
const serializationFailure = '40001'
const deadlockDetected = '40P01'
const retryableStates: unknown[] = [assertionFailed, serializationFailure, deadlockDetected]

/** Returns whether a transaction that failed with this error lost a race, and may succeed if it is retried. */
export const isRetryable = (error: unknown): boolean =>
  error instanceof TryAgain || retryableStates.includes(sqlState(error)) || isOutdatedPlan(error)

/**
 * Returns whether another process's migration has changed the columns of a statement that this connection had
 * prepared. In that case PostgreSQL has not run the statement, which works again on a new connection.
 */
export const isOutdatedPlan = (error: unknown): boolean =>
  sqlState(error) === '0A000' && /^cached plan must not change/.test((error as Error).message)

export function sqlState(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Returns whether a statement's `assert_or_abort` failed. */
export const isAssertionFailure = (error: unknown): boolean => sqlState(error) === assertionFailed

/** Returns the unique or exclusion constraint that the statement violated, if it did. */
export function violatedConstraint(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError && (error.code === '23505' || error.code === '23P01')
    ? error.constraint
    : undefined
}

/** SQL states in which PostgreSQL runs but cannot process requests, and the message for the caller. */
const unavailableStates = new Map([
  ['25006', 'The database is read-only.'],
  ['25P03', 'The database ended a transaction that was idle for too long.'],
  ['53100', 'The database is out of disk space.'],
  ['57014', 'The database did not finish a statement in time.'],
])

/** Returns a sentence that explains why the database is unavailable. */
export const unavailableReason = (error: unknown): string =>
  unavailableStates.get(sqlState(error) ?? '') ?? 'The database is temporarily unavailable.'

/** Returns whether the database is unavailable, as opposed to rejecting the statement. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof UnknownOutcome || error instanceof PoolExhausted) return true
  const code = sqlState(error)
  if (code !== undefined) {
    if (/^(08|57P0|53)/.test(code) || unavailableStates.has(code)) return true
    if (/^(ECONN|EPIPE|ENOENT|ENOTFOUND|EAI_|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)/.test(code)) return true
  }
  return (
    error instanceof Error &&
    /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after/.test(
      error.message,
    )
  )
}

/** Returns whether the database rejects the login because of a wrong user, password or database name. */
export const isDatabaseRefusal = (error: unknown): boolean => /^(28|3D)/.test(sqlState(error) ?? '')
