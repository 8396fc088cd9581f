export interface SignInLimits {
  /** The limit for one e-mail address from one client address. */
  passwordFailuresPerMinute: number
  passwordFailuresPerAddress: number
  /** The number of failures in an hour after which pauses begin. */
  passwordFailuresPerEmail: number
}

/**
 * Failed attempts in the last minute; for `email`, in the last hour. `pair` counts those for the e-mail address from this
 * client address.
 */
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
 * Returns the seconds until another attempt is allowed. Guesses for one e-mail address from many client
 * addresses are slowed down by pauses that double each time. These pauses do not apply to addresses that the
 * account has recently used.
 */
export function secondsToWait(failures: Failures, limits: SignInLimits): number {
  const waits = [0]
  const untilOldestExpires = (secondsAgo: number | null) => Math.max(1, windowSeconds - (secondsAgo ?? 0))
  if (failures.pair >= limits.passwordFailuresPerMinute)
    waits.push(untilOldestExpires(failures.pair_oldest_seconds_ago))
  if (failures.address >= limits.passwordFailuresPerAddress)
    waits.push(untilOldestExpires(failures.address_oldest_seconds_ago))
  if (!failures.is_known_address)
    waits.push(
      pauseSeconds(failures.email - limits.passwordFailuresPerEmail) -
        (failures.email_newest_seconds_ago ?? 0),
    )
  return Math.ceil(Math.max(...waits))
}

const pauseSeconds = (excess: number): number =>
  excess < 0 ? 0 : Math.min(longestPauseSeconds, firstPauseSeconds * 2 ** excess)
