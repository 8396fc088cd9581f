import type { Value } from '../values/types.ts'

const defaultMs = 20 * 60_000
const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000 }
const form = /^(?:\d+[hms])+$/

export const isDuration = (text: string): boolean => form.test(text)

/** Reads a duration such as `1h30m`. */
export function durationMs(value: Value): number {
  if (typeof value !== 'string' || !isDuration(value)) return defaultMs
  return [...value.matchAll(/(\d+)([hms])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * unitMs[unit!]!,
    0,
  )
}
