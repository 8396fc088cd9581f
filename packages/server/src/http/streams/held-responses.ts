import { Failure } from '../../domain/failure.ts'

const mostPerCaller = 64

/** The credential of a held response, and the owner that it counts against. */
export interface Holder {
  caller: string
  owner: string
}

/** Limits how many responses of one kind, such as event streams, each caller and each organization keeps open. */
export class HeldResponses {
  readonly #kind: string
  readonly #byCaller: Counts
  readonly #byOwner: Counts

  constructor(kind: string, mostPerOwner: number) {
    this.#kind = kind
    this.#byCaller = new Counts(mostPerCaller)
    this.#byOwner = new Counts(mostPerOwner)
  }

  /** Counts one more until the returned function is called; throws 429 at a limit. */
  hold({ caller, owner }: Holder): () => void {
    if (this.#byCaller.isFull(caller)) throw this.#refusal(`${mostPerCaller} per caller`)
    if (this.#byOwner.isFull(owner)) throw this.#refusal(`${this.#byOwner.most} per organization`)
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
  readonly most: number
  readonly #counts = new Map<string, number>()

  constructor(most: number) {
    this.most = most
  }

  isFull(key: string): boolean {
    return (this.#counts.get(key) ?? 0) >= this.most
  }

  add(key: string, change: 1 | -1): void {
    const count = (this.#counts.get(key) ?? 0) + change
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }
}
