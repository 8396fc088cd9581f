import { Failure } from '../domain/failure.ts'
import { UnknownOutcome } from './database.ts'

/** Instead of an outcome: it would have to wait, and nobody else shall wait with it. It is done again by itself. */
export const alone = Symbol('alone')

export type Settled<Result> = Result | Failure | typeof alone

interface Waiting<Item, Result> {
  item: Item
  resolve: (result: Result) => void
  reject: (reason: unknown) => void
}

export interface BatchWork<Item, Result> {
  /**
   * Does all of them in one transaction, and returns what became of each. `isAlone`: it is one by itself, nobody stands
   * behind it, and it may wait.
   */
  work: (items: Item[], isAlone: boolean) => Promise<Settled<Result>[]>
  /** Two that share one of these are never in the same list. */
  conflictsOf: (item: Item) => string[]
  most: number
}

/**
 * Does what is asked in lists: while one list is under way the next gathers, and what comes when nothing is under way goes
 * with whatever else came in the same turn of the event loop, mostly nothing. Nobody waits for a list to fill. If a whole
 * list fails, and nothing of it was written, each is done by itself: no request fails for the sake of another.
 */
export class Batches<Item, Result> {
  readonly #how: BatchWork<Item, Result>
  #waiting: Waiting<Item, Result>[] = []
  #isBusy = false

  constructor(how: BatchWork<Item, Result>) {
    this.#how = how
  }

  submit(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (this.#isBusy) return
      this.#isBusy = true
      setImmediate(() => void this.#run())
    })
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) await this.#settle(this.#next(), false)
    this.#isBusy = false
  }

  /** Takes them in the order in which they came; whoever conflicts with one before waits for the next list. */
  #next(): Waiting<Item, Result>[] {
    const batch: Waiting<Item, Result>[] = []
    const left: Waiting<Item, Result>[] = []
    const claimed = new Set<string>()
    for (const waiting of this.#waiting) {
      const conflicts = this.#how.conflictsOf(waiting.item)
      const fits = batch.length < this.#how.most && !conflicts.some((each) => claimed.has(each))
      for (const each of conflicts) claimed.add(each)
      ;(fits ? batch : left).push(waiting)
    }
    this.#waiting = left
    return batch
  }

  async #settle(batch: Waiting<Item, Result>[], isAlone: boolean): Promise<void> {
    try {
      const items = batch.map(({ item }) => item)
      const outcomes = await this.#how.work(items, isAlone)
      for (const [index, waiting] of batch.entries()) {
        const outcome = outcomes[index] as Settled<Result>
        if (outcome === alone) void this.#settle([waiting], true)
        else if (outcome instanceof Failure) waiting.reject(outcome)
        else waiting.resolve(outcome)
      }
    } catch (error) {
      const isOver = isAlone || batch.length === 1 || error instanceof UnknownOutcome
      for (const waiting of batch)
        if (isOver) waiting.reject(error)
        else void this.#settle([waiting], true)
    }
  }
}
