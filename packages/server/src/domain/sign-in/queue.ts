import { Failure } from '../failure.ts'

/** Lets a few work at once and others wait, first come, first served. Whoever comes when it is full is sent away at once. */
export class Queue {
  readonly #mostWaiting: number
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(mostAtOnce: number, mostWaiting: number) {
    this.#free = mostAtOnce
    this.#mostWaiting = mostWaiting
  }

  async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else {
      if (this.#waiting.length >= this.#mostWaiting)
        throw new Failure('rate_limited', 'Too many people sign in at this moment: try again in 1 s.', {
          retryAfterSeconds: 1,
        })
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    try {
      return await work()
    } finally {
      // The place passes to the next in line, so that nobody new can slip in between.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
