import { Failure } from '../../domain/failure.ts'

const maxRunning = 32
const maxWaiting = 1_000

/** The reads of one owner. */
interface Reads {
  running: number
  /** Functions that start the waiting reads, in the order of arrival. */
  waiting: (() => void)[]
}

/**
 * Runs reads that must not be rate limited, because clients drop a resource from their state after any read
 * error. Each owner has its own queue, so that one owner's reads do not slow down other owners. A client can
 * have only as many waiting reads as it has connections.
 */
export class ReadQueue {
  readonly #owners = new Map<string, Reads>()

  async run<T>(owner: string, read: () => Promise<T>): Promise<T> {
    await this.#enter(owner)
    try {
      return await read()
    } finally {
      this.#leave(owner)
    }
  }

  async #enter(owner: string): Promise<void> {
    const reads = this.#owners.get(owner) ?? { running: 0, waiting: [] }
    this.#owners.set(owner, reads)
    if (reads.running < maxRunning) {
      reads.running++
      return
    }
    if (reads.waiting.length >= maxWaiting)
      throw new Failure(
        'unavailable',
        `More than ${maxWaiting} reads of the organization are waiting. Try again.`,
      )
    await new Promise<void>((start) => reads.waiting.push(start))
  }

  /** Starts the next waiting read in place of the one that ended. */
  #leave(owner: string): void {
    const reads = this.#owners.get(owner)!
    const next = reads.waiting.shift()
    if (next) next()
    else reads.running--
    if (reads.running === 0) this.#owners.delete(owner)
  }
}
