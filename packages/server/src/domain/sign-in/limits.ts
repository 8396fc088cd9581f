export interface SignInLimits {
  /** Limit for one e-mail from one address. */
  passwordFailuresPerMinute: number
  passwordFailuresPerAddress: number
  /** Failures in an hour after which pauses begin. */
  passwordFailuresPerEmail: number
}

/** Failed attempts of the last minute; for `email`, of the last hour. */
export interface Failures {
  pair: number
  pair_oldest_seconds_ago: number | null
  address: number
  address_oldest_seconds_ago: number | null
  email: number
  email_newest_seconds_ago: number | null
  /** True if the account has recently signed in from this address. */
  is_known_address: boolean
}

const windowSeconds = 60
const firstPauseSeconds = 60
const longestPauseSeconds = 900

/**
 * Returns the seconds until another attempt is allowed. Guesses at one e-mail from many addresses are slowed down by pauses
 * that double; these pauses do not apply to the account's usual address.
 */
export function secondsToWait(failures: Failures, limits: SignInLimits): number {
  const waits = [0]
  const untilOldestIsOver = (secondsAgo: number | null) => Math.max(1, windowSeconds - (secondsAgo ?? 0))
  if (failures.pair >= limits.passwordFailuresPerMinute)
    waits.push(untilOldestIsOver(failures.pair_oldest_seconds_ago))
  if (failures.address >= limits.passwordFailuresPerAddress)
    waits.push(untilOldestIsOver(failures.address_oldest_seconds_ago))
  if (!failures.is_known_address)
    waits.push(
      pauseSeconds(failures.email - limits.passwordFailuresPerEmail) -
        (failures.email_newest_seconds_ago ?? 0),
    )
  return Math.ceil(Math.max(...waits))
}

const pauseSeconds = (tooMany: number): number =>
  tooMany < 0 ? 0 : Math.min(longestPauseSeconds, firstPauseSeconds * 2 ** tooMany)
