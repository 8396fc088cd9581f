import { Failure } from '../../domain/failure.ts'

const mostHeld = 64

/** Limits how many responses of one kind, such as event streams, each caller keeps open. */
export class HeldResponses {
  readonly #kind: string
  readonly #counts = new Map<string, number>()

  constructor(kind: string) {
    this.#kind = kind
  }

  /** Counts one more until the returned function is called; throws 429 at the limit. */
  hold(caller: string): () => void {
    const count = this.#counts.get(caller) ?? 0
    if (count >= mostHeld)
      throw new Failure('rate_limited', `Too many ${this.#kind} at once. Limit: ${mostHeld} per caller.`, {
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
