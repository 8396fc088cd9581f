import { Failure } from '../../domain/failure.ts'

const mostHeld = 64

/** How many answers of one kind (waits, streams) a caller has us hold open. */
export class HeldAnswers {
  readonly #what: string
  readonly #counts = new Map<string, number>()

  constructor(what: string) {
    this.#what = what
  }

  /** Counts one more until the returned function is called: 429 if that is one too many. */
  hold(caller: string): () => void {
    const count = this.#counts.get(caller) ?? 0
    if (count >= mostHeld)
      throw new Failure('rate_limited', `Too many ${this.#what} at once: at most ${mostHeld}.`, {
        retryAfterSeconds: 1,
      })
    this.#counts.set(caller, count + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      const left = this.#counts.get(caller)! - 1
      if (left > 0) this.#counts.set(caller, left)
      else this.#counts.delete(caller)
    }
  }
}
