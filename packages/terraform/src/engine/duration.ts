/** How long to wait for operations if a resource has no `timeouts`. */
export const defaultDuration = '20m'

const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000 }
const pattern = /^(?:\d+[hms])+$/

export const isDuration = (text: string): boolean => pattern.test(text)

/** Parses a duration such as `1h30m`, which the plan has already validated. */
export const durationMs = (duration: string): number =>
  [...duration.matchAll(/(\d+)([hms])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * unitMs[unit!]!,
    0,
  )
