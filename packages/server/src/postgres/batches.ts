import { Failure } from '../domain/failure.ts'
import { allSettledThenThrow } from './all-settled.ts'
import { type Database, TryAgain, type Tx, UnknownOutcome } from './database.ts'
import { BatchMember, type Transaction } from './transaction.ts'

/** The result of one request of a batch. After `TryAgain`, the request is retried in its own transaction. */
export type BatchResult<Result> = Result | Failure | TryAgain

interface WaitingItem<Item, Result> {
  item: Item
  resolve: (result: Result) => void
  reject: (reason: unknown) => void
}

export interface BatchOptions<Item, Result> {
  /**
   * Handles the requests together. With `isAlone`, there is a single request, which has left its batch and
   * may wait.
   */
  handle: (items: Item[], isAlone: boolean) => Promise<BatchResult<Result>[]>
  maxItems: number
}

/**
 * Handles requests in batches. While one batch is running, new requests collect in the next one. If none is
 * running, the requests of the same turn of the event loop form a batch. No request waits for a batch to
 * fill. If a whole batch fails and is rolled back, each request is handled separately, so that no request
 * fails because of another.
 */
export class Batches<Item, Result> {
  readonly #options: BatchOptions<Item, Result>
  #waiting: WaitingItem<Item, Result>[] = []
  #isBusy = false

  constructor(options: BatchOptions<Item, Result>) {
    this.#options = options
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
    while (this.#waiting.length > 0)
      await this.#handle(this.#waiting.splice(0, this.#options.maxItems), false)
    this.#isBusy = false
  }

  async #handle(batch: WaitingItem<Item, Result>[], isAlone: boolean): Promise<void> {
    try {
      const results = await this.#options.handle(
        batch.map(({ item }) => item),
        isAlone,
      )
      for (const [index, waiting] of batch.entries()) {
        const result = results[index] as BatchResult<Result>
        if (result instanceof TryAgain && !isAlone) void this.#handle([waiting], true)
        else if (result instanceof Error) waiting.reject(result)
        else waiting.resolve(result)
      }
    } catch (error) {
      const cannotRetry = isAlone || batch.length === 1 || error instanceof UnknownOutcome
      for (const waiting of batch)
        if (cannotRetry) waiting.reject(error)
        else void this.#handle([waiting], true)
    }
  }
}

/** Every request of the batch was refused: roll back. */
class AllRefused extends Error {}

/**
 * Runs requests in one transaction, each as if it had the transaction to itself. If a request fails before it
 * has written anything, only that request fails; otherwise the whole transaction fails. If the outcome of the
 * commit is unknown, `didCommit` finds out whether the transaction was committed.
 */
export async function transactTogether<Item, Result>(
  database: Database,
  items: Item[],
  isAlone: boolean,
  work: (tx: Tx, item: Item) => Promise<Result>,
  didCommit: (results: BatchResult<Result>[]) => Promise<boolean> = async () => false,
  owner?: string,
): Promise<BatchResult<Result>[]> {
  let results: BatchResult<Result>[] = []
  const attempt = async (tx: Transaction) => {
    results = await allSettledThenThrow(
      items.map((item) => (isAlone ? work(tx, item) : workAsMember(tx, item))),
    )
    if (!isAlone && results.every((result) => result instanceof Error)) throw new AllRefused()
  }
  try {
    await database.transaction(attempt, { isBatch: !isAlone, ...(owner !== undefined && { owner }) })
  } catch (error) {
    const isCommitted = error instanceof UnknownOutcome && (await didCommit(results))
    if (!isCommitted && !(error instanceof AllRefused)) throw error
  }
  return results

  async function workAsMember(batch: Transaction, item: Item): Promise<BatchResult<Result>> {
    const tx = new BatchMember(batch)
    try {
      return await work(tx, item)
    } catch (error) {
      if (!tx.hasWritten && (error instanceof Failure || error instanceof TryAgain)) return error
      throw error
    }
  }
}

interface SharedTransaction<Item, Result> {
  maxItems: number
  work: (tx: Tx, item: Item) => Promise<Result>
  didCommit?: (results: BatchResult<Result>[]) => Promise<boolean>
  /**
   * The owner of a request. If the request runs alone, it waits for a connection in its owner's queue. A
   * batch has several owners, so it waits in the system's queue.
   */
  ownerOf?: (item: Item) => string
}

/**
 * Returns a function that does the work for one item, in a transaction that it shares with concurrent calls.
 */
export function inSharedTransactions<Item, Result>(
  database: Database,
  { maxItems, work, didCommit, ownerOf }: SharedTransaction<Item, Result>,
): (item: Item) => Promise<Result> {
  const batches = new Batches<Item, Result>({
    maxItems,
    handle: (items, isAlone) =>
      transactTogether(database, items, isAlone, work, didCommit, isAlone ? ownerOf?.(items[0]!) : undefined),
  })
  return (item) => batches.submit(item)
}
