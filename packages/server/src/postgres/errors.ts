import pg from 'pg'

/** Thrown to have the whole transaction tried again: a random choice collided, or a request must leave its batch. */
export class TryAgain extends Error {}

/** The connection broke at the commit: what was written may stand or not. */
export class UnknownOutcome extends Error {}

const serializationFailure = '40001'
const deadlockDetected = '40P01'
/** A statement's `assert_or_abort` found another state than the one that was read before. */
const unmet = 'SL001'

/** Whether a transaction that failed with this error may succeed if it is tried again. */
export function isWorthAnotherTry(error: unknown): boolean {
  const code = sqlState(error)
  return (
    error instanceof TryAgain ||
    code === serializationFailure ||
    code === deadlockDetected ||
    // Lost a race with another transaction: read again.
    code === unmet
  )
}

export function sqlState(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Whether it is the error of a statement's `assert_or_abort`. */
export const isUnmet = (error: unknown): boolean => sqlState(error) === unmet

/** Returns the unique or exclusion constraint that a statement ran into, if that is what happened. */
export function violatedConstraint(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError && (error.code === '23505' || error.code === '23P01')
    ? error.constraint
    : undefined
}

/** Returns whether the database is away, as opposed to disagreeing with the statement. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof UnknownOutcome) return true
  const code = sqlState(error)
  if (code !== undefined) {
    if (/^(08|57P0|53)/.test(code)) return true
    if (/^(ECONN|EPIPE|ENOENT|ENOTFOUND|EAI_|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)/.test(code)) return true
  }
  return (
    error instanceof Error &&
    /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after/.test(
      error.message,
    )
  )
}

/** Returns whether the database does not let us in: a wrong user, password or name. */
export const isDatabaseRefusal = (error: unknown): boolean => /^(28|3D)/.test(sqlState(error) ?? '')
