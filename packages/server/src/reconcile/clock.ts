import type { Services } from '../services.ts'
import { alertMs, recordForwardStep, recordTime } from '../store/fleet/clock.ts'

/** After a clock jump, VMs do not expire for this time, so that an operator can decide what to keep. */
const holdMs = 15 * 60_000

/**
 * Watches PostgreSQL's clock, which is the service's clock. If it jumps back, the service's time continues from where
 * it was, and runs more slowly until PostgreSQL's clock has caught up. A jump forward is found by comparison
 * with this process's timer, and can only be reported.
 */
export class ClockGuard {
  readonly #services: Services
  #earlier: { ms: number; askedAt: number } | undefined

  constructor(services: Services) {
    this.#services = services
  }

  /** Records the time, and raises an alert for a jump. Returns whether VMs may expire. */
  async observe(): Promise<boolean> {
    const { database, log } = this.#services
    const askedAt = performance.now()
    const { ms, wentBackMs, sinceStepMs } = (await recordTime(database))!
    // The time between the two readings was at most this long. A delayed reading is not a jump.
    const elapsedMs = performance.now() - (this.#earlier?.askedAt ?? Number.NEGATIVE_INFINITY)
    const wentForwardMs = ms - (this.#earlier?.ms ?? ms) - elapsedMs
    this.#earlier = { ms, askedAt }
    if (wentBackMs > 0) log.error({ ms: wentBackMs }, "PostgreSQL's clock jumped back")
    const isForwardStep = wentForwardMs >= alertMs
    if (isForwardStep && (await recordForwardStep(database, wentForwardMs)))
      log.error({ ms: wentForwardMs }, "PostgreSQL's clock jumped forward")
    return !isForwardStep && wentBackMs === 0 && (sinceStepMs === null || sinceStepMs > holdMs)
  }
}
