const firstPauseMs = 100
const longestPauseMs = 30_000

/** How long to wait after so many failures: longer each time, and not all at the same moment. */
export function backoffMs(failures: number): number {
  return Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures, 12)) * (0.75 + Math.random() / 2)
}
