import { Failure } from '../../domain/failure.ts'

const maxWaitMs = 10_000

interface Waiter {
  start: () => void
  timer: NodeJS.Timeout
}

/** The requests of one owner. */
interface Requests {
  running: number
  /** In the order of arrival. */
  waiting: Set<Waiter>
}

/**
 * Limits how many requests of each owner run concurrently, so that one organization cannot occupy the event
 * loop and the database. Further requests wait for a short time, and the number of waiting requests is
 * limited too.
 */
export class InFlight {
  readonly #maxRunning: number
  readonly #maxWaiting: number
  readonly #owners = new Map<string, Requests>()

  constructor(limits: { organizationInFlight: number; organizationQueue: number }) {
    this.#maxRunning = limits.organizationInFlight
    this.#maxWaiting = limits.organizationQueue
  }

  /** Runs a request now or when its turn comes; throws 429 if it cannot run in time. */
  async run<T>(owner: string, request: () => Promise<T>): Promise<T> {
    const waiting = this.#enter(owner)
    if (waiting) await waiting
    try {
      return await request()
    } finally {
      this.#leave(owner)
    }
  }

  /** Returns undefined if the request may run now. */
  #enter(owner: string): Promise<void> | undefined {
    const requests = this.#owners.get(owner)
    if (!requests) {
      this.#owners.set(owner, { running: 1, waiting: new Set() })
      return undefined
    }
    if (requests.running < this.#maxRunning) {
      requests.running++
      return undefined
    }
    return this.#wait(requests)
  }

  /** Starts the next request of the owner, if one is waiting. */
  #leave(owner: string): void {
    const requests = this.#owners.get(owner)!
    for (const waiter of requests.waiting) {
      requests.waiting.delete(waiter)
      clearTimeout(waiter.timer)
      waiter.start()
      return
    }
    requests.running--
    if (requests.running === 0) this.#owners.delete(owner)
  }

  async #wait({ waiting }: Requests): Promise<void> {
    if (waiting.size >= this.#maxWaiting) throw this.#refusal()
    return new Promise((start, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(waiter)
        reject(this.#refusal())
      }, maxWaitMs)
      const waiter = { start, timer }
      waiting.add(waiter)
    })
  }

  #refusal(): Failure {
    return new Failure(
      'rate_limited',
      `Too many concurrent requests. Limit per organization: ${this.#maxRunning} running and ${this.#maxWaiting} waiting. Try again in 1 s.`,
      { retryAfterSeconds: 1 },
    )
  }
}
