import { PoolExhausted } from './errors.ts'

const maxWaitMs = 8_000

/** The owner of work that the service does for all organizations, such as background work and shared reads. */
export const systemOwner = ''

interface Waiter {
  /** Resolves the promise of the waiter. */
  serve: () => void
  timer: NodeJS.Timeout
}

/**
 * Decides which owner gets the next database connection. Owners, mostly organizations, take turns, so that an
 * owner with many waiting requests delays another owner by at most one request. Every second connection goes
 * to work of the system, if any waits.
 */
export class ConnectionQueue {
  #free: number
  /** The waiters of each owner. The owners are in the order of their turns. */
  readonly #owners = new Map<string, Set<Waiter>>()
  readonly #system = new Set<Waiter>()
  #wasSystemServed = false

  constructor(connections: number) {
    this.#free = connections
  }

  get waitingCount(): number {
    let count = this.#system.size
    for (const waiters of this.#owners.values()) count += waiters.size
    return count
  }

  /** Takes a connection until `release` is called. Returns undefined if one is free; rejects if none is free in time. */
  take(owner: string): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free--
      return undefined
    }
    return this.#wait(owner)
  }

  /** Hands the connection to the next waiter. */
  release(): void {
    const waiter = this.#next()
    if (!waiter) {
      this.#free++
      return
    }
    clearTimeout(waiter.timer)
    waiter.serve()
  }

  #wait(owner: string): Promise<void> {
    return new Promise((serve, reject) => {
      const waiters = this.#waitersOf(owner)
      const timer = setTimeout(() => {
        waiters.delete(waiter)
        if (waiters.size === 0) this.#owners.delete(owner)
        reject(new PoolExhausted(`no database connection became free within ${maxWaitMs} ms`))
      }, maxWaitMs)
      const waiter = { serve, timer }
      waiters.add(waiter)
    })
  }

  #waitersOf(owner: string): Set<Waiter> {
    if (owner === systemOwner) return this.#system
    let waiters = this.#owners.get(owner)
    if (!waiters) {
      waiters = new Set()
      this.#owners.set(owner, waiters)
    }
    return waiters
  }

  #next(): Waiter | undefined {
    this.#wasSystemServed = this.#system.size > 0 && (this.#owners.size === 0 || !this.#wasSystemServed)
    if (this.#wasSystemServed) return takeFirst(this.#system)
    for (const [owner, waiters] of this.#owners) {
      this.#owners.delete(owner)
      // The owner moves to the end of the order.
      if (waiters.size > 1) this.#owners.set(owner, waiters)
      return takeFirst(waiters)
    }
    return undefined
  }
}

function takeFirst(waiters: Set<Waiter>): Waiter | undefined {
  for (const waiter of waiters) {
    waiters.delete(waiter)
    return waiter
  }
  return undefined
}
