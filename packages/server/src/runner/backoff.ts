const firstPauseMs = 100
const longestPauseMs = 30_000

/** Varies a pause by a quarter, so that processes that started together do not act at the same moments. */
export const jittered = (ms: number): number => ms * (0.75 + Math.random() / 2)

/** Returns the pause after this number of failures: it doubles each time. */
export const backoffMs = (failures: number): number =>
  jittered(Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures, 12)))
