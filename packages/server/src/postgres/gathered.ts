import type { Tx } from './database.ts'
import { BatchMember, retryAlone } from './transaction.ts'

/**
 * Returns a function that finds the state of a transaction or batch. All gathered calls of this transaction or
 * batch share the state, across turns of the event loop.
 */
export function perTransaction<State>(create: () => State): (tx: Tx) => State {
  const states = new WeakMap<Tx, State>()
  return (tx) => {
    const state = states.get(tx.batch) ?? create()
    states.set(tx.batch, state)
    return state
  }
}

/** The result for one caller, or that caller's failure. */
export type OwnResult<Result> = Result | Error

interface Call<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

interface GatherOptions<Item> {
  /** Two requests of a batch must not have the same claim. If they do, the second one leaves the batch. */
  claimOf?: (item: Item) => string
}

/**
 * Turns a store function for many items into a function for one item. Calls that the requests of a batch make
 * in the same turn of the event loop become one call of `many`, in the order in which they were made. Each
 * caller gets its own result or failure. Calls of `many` for one transaction run one after another, so that a
 * later one sees what the earlier ones have claimed.
 */
export function gathered<Item, Result>(
  many: (tx: Tx, items: Item[]) => Promise<OwnResult<Result>[]>,
  { claimOf }: GatherOptions<Item> = {},
): (tx: Tx, item: Item) => Promise<Result> {
  const waiting = new WeakMap<Tx, Call<Item, Result>[]>()
  const running = new WeakMap<Tx, Promise<void>>()
  const claimsOf = perTransaction(() => new Map<string, Tx>())

  /** Returns whether another request of the batch has the same claim. */
  function isClaimed(tx: Tx, claim: string): boolean {
    const claims = claimsOf(tx)
    const owner = claims.get(claim) ?? tx
    claims.set(claim, owner)
    return owner !== tx
  }

  async function run(batch: Tx, calls: Call<Item, Result>[]): Promise<void> {
    waiting.delete(batch)
    try {
      const items = calls.map(({ item }) => item)
      const results = await many(batch, items)
      for (const [index, { resolve, reject }] of calls.entries()) {
        const result = results[index]
        if (result instanceof Error) reject(result)
        else resolve(result as Result)
      }
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }

  function runInTurn(batch: Tx, calls: Call<Item, Result>[]): void {
    const previous = running.get(batch)
    running.set(batch, previous ? previous.then(() => run(batch, calls)) : run(batch, calls))
  }

  return (tx, item) => {
    if (claimOf && isClaimed(tx, claimOf(item)))
      return Promise.reject(retryAlone('another request of the batch has the same claim'))
    return new Promise((resolve, reject) => {
      const { batch } = tx
      let calls = waiting.get(batch)
      if (!calls) {
        const first: Call<Item, Result>[] = []
        calls = first
        waiting.set(batch, first)
        if (batch.gather) batch.gather(() => runInTurn(batch, first))
        else queueMicrotask(() => void run(batch, first))
      }
      calls.push({ item, resolve, reject })
    })
  }
}

/** Like `gathered`, for changes. If a request fails after its change, the whole batch fails. */
export function gatheredChange<Item, Result>(
  many: (tx: Tx, items: Item[]) => Promise<OwnResult<Result>[]>,
): (tx: Tx, item: Item) => Promise<Result> {
  const change = gathered(many)
  return (tx, item) => {
    if (tx instanceof BatchMember) tx.hasWritten = true
    return change(tx, item)
  }
}
