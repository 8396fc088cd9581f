import type { QueueState, RunningVm } from './queue.ts'
import { QueueSimulation } from './simulation.ts'

export interface Estimate {
  earliestAt: number | null
  likelyAt: number | null
  latestAt: number | null
  basis: 'expiries' | 'history' | 'none'
}

/** With fewer past runtimes than this, no estimate is made from history. */
const minRuntimes = 30

/**
 * Estimates when each request will be granted, by simulating the queue. The first simulation ends only VMs
 * that have a time to live. If that is not enough for a request, further simulations also end the other VMs,
 * after runtimes that were typical in the past.
 */
export function estimate(queue: QueueState): Map<string, Estimate> {
  const simulate = (endOf: (vm: RunningVm) => number | null) => new QueueSimulation(queue, endOf).run()
  const known = simulate(({ endsAt }) => endsAt)
  const byHistory = (share: number) =>
    queue.runtimesMs.length < minRuntimes
      ? new Map<string, number>()
      : simulate(
          ({ endsAt, since, reservedUntil }) =>
            endsAt ??
            Math.max(queue.now + remainingMs(queue.runtimesMs, queue.now - since, share), reservedUntil ?? 0),
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

/**
 * Returns the remaining runtime of a VM of this age: the time after which the given share of the past VMs that
 * reached this age had ended.
 */
export function remainingMs(runtimesMs: number[], ageMs: number, share: number): number {
  const younger = countUpTo(runtimesMs, ageMs)
  const older = runtimesMs.length - younger
  // The VM is older than every past VM, so only the typical runtime is known.
  if (older === 0) return runtimesMs[Math.ceil(share * runtimesMs.length) - 1]!
  return runtimesMs[younger + Math.max(0, Math.ceil(share * older) - 1)]! - ageMs
}

/** Counts the values up to a bound, in an ascending list. */
function countUpTo(values: number[], bound: number): number {
  let [low, high] = [0, values.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle]! <= bound) low = middle + 1
    else high = middle
  }
  return low
}
