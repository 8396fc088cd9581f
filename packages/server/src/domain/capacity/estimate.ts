import type { QueueState, RunningVm } from './queue.ts'
import { QueueReplay } from './replay.ts'

export interface Estimate {
  earliestAt: number | null
  likelyAt: number | null
  latestAt: number | null
  basis: 'expiries' | 'history' | 'none'
}

/** Fewer VMs say too little about how long others will run. */
const fewestLives = 30

/**
 * Estimates when each request is granted, by a replay of the queue. First only VMs with a time to live end. If that is not
 * enough for a request, the other VMs end as such VMs did in the past.
 */
export function estimate(queue: QueueState): Map<string, Estimate> {
  const replay = (endOf: (vm: RunningVm) => number | null) => new QueueReplay(queue, endOf).run()
  const known = replay(({ endsAt }) => endsAt)
  const byHistory = (share: number) =>
    queue.livesMs.length < fewestLives
      ? new Map<string, number>()
      : replay(
          ({ endsAt, since, reservedUntil }) =>
            endsAt ??
            Math.max(queue.now + remainingMs(queue.livesMs, queue.now - since, share), reservedUntil ?? 0),
        )
  const [early, likely, late] = [byHistory(0.1), byHistory(0.5), byHistory(0.9)]
  return new Map(
    queue.waiting.map(({ id }): [string, Estimate] => {
      const at = known.get(id)
      const likelyAt = likely.get(id)
      if (at !== undefined && (likelyAt === undefined || likelyAt >= at))
        return [id, { earliestAt: at, likelyAt: at, latestAt: at, basis: 'expiries' }]
      if (likelyAt === undefined)
        return [id, { earliestAt: null, likelyAt: null, latestAt: null, basis: 'none' }]
      const earliestAt = Math.min(early.get(id) ?? likelyAt, likelyAt)
      const latestAt = Math.max(late.get(id) ?? at ?? likelyAt, likelyAt)
      return [id, { earliestAt, likelyAt, latestAt, basis: 'history' }]
    }),
  )
}

/** Returns how long a VM of this age still runs, for a share of the VMs that got as old. */
export function remainingMs(livesMs: number[], ageMs: number, share: number): number {
  const younger = countUpTo(livesMs, ageMs)
  const older = livesMs.length - younger
  // It is older than every VM before it: nothing is known but how long VMs run.
  if (older === 0) return livesMs[Math.ceil(share * livesMs.length) - 1]!
  return livesMs[younger + Math.max(0, Math.ceil(share * older) - 1)]! - ageMs
}

/** The number of values up to a bound, in a list in ascending order. */
function countUpTo(values: number[], bound: number): number {
  let [low, high] = [0, values.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle]! <= bound) low = middle + 1
    else high = middle
  }
  return low
}
