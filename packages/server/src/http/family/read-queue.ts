import { Failure } from '../../domain/failure.ts'

const mostRunning = 32
const mostWaiting = 1_000

/** The reads of one owner. */
interface Reads {
  running: number
  /** In the order of arrival. */
  waiting: (() => void)[]
}

/**
 * Runs reads that must not be refused for their rate: clients forget a resource after any error of its read. Each owner has a
 * queue, so that its reads do not slow down other owners; the connections of a client limit how many of its reads wait.
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
    if (reads.running < mostRunning) {
      reads.running++
      return
    }
    if (reads.waiting.length >= mostWaiting)
      throw new Failure(
        'unavailable',
        `More than ${mostWaiting} reads of the organization are waiting. Try again.`,
      )
    await new Promise<void>((start) => reads.waiting.push(start))
  }

  /** The next read takes the turn of the one that ended. */
  #leave(owner: string): void {
    const reads = this.#owners.get(owner)!
    const next = reads.waiting.shift()
    if (next) next()
    else reads.running--
    if (reads.running === 0) this.#owners.delete(owner)
  }
}
