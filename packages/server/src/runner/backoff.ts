const firstPauseMs = 100
const longestPauseMs = 30_000

/** Varies a pause by up to a quarter, so that processes that started together do not act at the same time. */
export const withJitter = (ms: number): number => ms * (0.75 + Math.random() / 2)

/** Returns the pause after this many failures. It doubles each time. */
export const backoffMs = (failures: number): number =>
  withJitter(Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures, 12)))
