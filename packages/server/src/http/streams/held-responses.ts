import { Failure } from '../../domain/failure.ts'

const maxPerCaller = 64

/** The caller that an open response belongs to, and the owner whose limit it counts against. */
export interface Holder {
  caller: string
  owner: string
}

/** Limits how many responses of one kind, such as event streams, each caller and each organization keeps open. */
export class HeldResponses {
  readonly #kind: string
  readonly #byCaller: Counts
  readonly #byOwner: Counts

  constructor(kind: string, maxPerOwner: number) {
    this.#kind = kind
    this.#byCaller = new Counts(maxPerCaller)
    this.#byOwner = new Counts(maxPerOwner)
  }

  /** Counts one more response until the returned function is called; throws 429 at a limit. */
  hold({ caller, owner }: Holder): () => void {
    if (this.#byCaller.isFull(caller)) throw this.#refusal(`${maxPerCaller} per caller`)
    if (this.#byOwner.isFull(owner)) throw this.#refusal(`${this.#byOwner.max} per organization`)
    this.#byCaller.add(caller, 1)
    this.#byOwner.add(owner, 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#byCaller.add(caller, -1)
      this.#byOwner.add(owner, -1)
    }
  }

  #refusal(limit: string): Failure {
    return new Failure('rate_limited', `Too many ${this.#kind} at once. Limit: ${limit}.`, {
      retryAfterSeconds: 1,
    })
  }
}

class Counts {
  readonly max: number
  readonly #counts = new Map<string, number>()

  constructor(max: number) {
    this.max = max
  }

  isFull(key: string): boolean {
    return (this.#counts.get(key) ?? 0) >= this.max
  }

  add(key: string, change: 1 | -1): void {
    const count = (this.#counts.get(key) ?? 0) + change
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }
}
