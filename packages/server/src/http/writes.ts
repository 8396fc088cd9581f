import type { Route, RouteId } from '@slipway/contract'
import { allSettledThenThrow } from '../postgres/all-settled.ts'
import { Batches, type BatchResult, transactTogether } from '../postgres/batches.ts'
import type { Tx } from '../postgres/database.ts'
import { jsonTextOf } from '../postgres/json.ts'
import { withSharedReads } from '../postgres/keyed.ts'
import { findAnyOperation } from '../store/compute/operations.ts'
import { Access } from './access.ts'
import type { Context, Handler, HttpServices } from './context.ts'
import { type IdempotentRequest, onceOnly, type StoredResponse } from './idempotency.ts'

/** A request that changes something. */
export interface Write {
  contextIn(tx: Tx): Context
  /** If it has an Idempotency-Key. */
  once: IdempotentRequest | undefined
}

/** The most requests in one transaction: it holds its locks for no longer than these take. */
const mostTogether = 32

/** Returns what answers the requests of a route: each in its own transaction, or those that come together in one. */
export function writerOf(
  id: RouteId,
  route: Route,
  handler: Handler<RouteId>,
  services: HttpServices,
): (write: Write) => Promise<StoredResponse> {
  const { database } = services
  const answer = (tx: Tx, { contextIn, once }: Write) =>
    onceOnly(tx, once, async () => {
      const context = contextIn(tx)
      const result = await answerIfAllowed(tx, context)
      if (route.isAudited && !tx.hasSignalled('events')) throw new Error(`${id} wrote no audit event`)
      return jsonTextOf(result)
    })
  async function answerIfAllowed(tx: Tx, context: Context) {
    const check = requireStill(tx, route, context)
    // The answer of a batch waits for the check only in the end: its callers were let in a moment ago.
    if (route.isBatched) return (await allSettledThenThrow([check, handler(context)]))[1]
    await check
    return handler(context)
  }
  if (!route.isBatched) return (write) => database.transaction((tx) => answer(tx, write))

  const batches = new Batches<Write, StoredResponse>({
    most: mostTogether,
    work: (writes, isAlone) =>
      transactTogether(database, writes, isAlone, answer, (answers) => areDone(services, answers)),
  })
  return (write) => batches.submit(write)
}

/**
 * Checks again whether the caller may do this, by what the transaction sees: a caller that was suspended or lost a key, a
 * role or the payment method before it began changes nothing.
 */
async function requireStill(tx: Tx, route: Route, { caller, request }: Context): Promise<void> {
  if (!caller) return
  const access = accesses.get(tx.batch) ?? new Access(withSharedReads(tx.batch))
  accesses.set(tx.batch, access)
  await access.grant(route, request)
}

/** The requests of a batch read their callers together. */
const accesses = new WeakMap<Tx, Access>()

/** After a commit whose outcome is unknown: if the operations can be seen, it took place. */
async function areDone({ database }: HttpServices, answers: BatchResult<StoredResponse>[]): Promise<boolean> {
  const ids = answers.flatMap((answer) =>
    answer instanceof Error || answer.isReplay ? [] : operationIdOf(answer),
  )
  const found = await Promise.all(ids.map((id) => findAnyOperation(database, id))).catch(() => [undefined])
  return found.every((operation) => operation !== undefined)
}

const operationIdOf = ({ text }: StoredResponse): string =>
  (JSON.parse(text) as { operation: { operation_id: string } }).operation.operation_id
