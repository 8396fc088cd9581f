import { Failure } from '../failure.ts'

/**
 * Runs a few tasks concurrently while others wait in order. A task that arrives when the queue is full is
 * rejected.
 */
export class Queue {
  readonly #maxWaiting: number
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(maxAtOnce: number, maxWaiting: number) {
    this.#free = maxAtOnce
    this.#maxWaiting = maxWaiting
  }

  async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else {
      if (this.#waiting.length >= this.#maxWaiting)
        throw new Failure('rate_limited', 'Too many concurrent sign-ins. Try again in 1 s.', {
          retryAfterSeconds: 1,
        })
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    try {
      return await work()
    } finally {
      // The slot passes directly to the next waiting task, so that a new one cannot take it.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
