import { CoalescedTask } from '../runner/coalesced.ts'
import type { Services } from '../services.ts'
import { stampEvents } from '../store/events/events.ts'

const delayMs = 25

/** Gives committed events their positions: soon after each commit, and on request. */
export class Stamper {
  readonly #services: Services
  readonly #stamping = new CoalescedTask(() => stampEvents(this.#services.database))
  #timer: NodeJS.Timeout | undefined

  constructor(services: Services) {
    this.#services = services
  }

  /** Returns a function that stops the stamper. */
  start(): () => void {
    const unsubscribe = this.#services.signals.on('events', () => this.#stampSoon())
    return () => {
      unsubscribe()
      clearTimeout(this.#timer)
    }
  }

  stamp(): Promise<void> {
    return this.#stamping.run()
  }

  /** Waits a short time, so that events that are committed together are stamped together. */
  #stampSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.stamp().catch(() => {})
    }, delayMs)
  }
}
