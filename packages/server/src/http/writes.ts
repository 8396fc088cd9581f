import type { Route, RouteId } from '@slipway/contract'
import { allSettledThenThrow } from '../postgres/all-settled.ts'
import { type BatchResult, inSharedTransactions } from '../postgres/batches.ts'
import type { Tx } from '../postgres/database.ts'
import { jsonTextOf } from '../postgres/json.ts'
import { withSharedReads } from '../postgres/keyed.ts'
import { findAnyOperation } from '../store/compute/operations.ts'
import { Access } from './access.ts'
import type { Context, Handler, HttpServices } from './context.ts'
import { type IdempotentRequest, runOnce, type StoredResponse } from './idempotency.ts'

/** A request that changes something. */
export interface Write {
  contextIn(tx: Tx): Context
  /** The owner of the request. Owners take turns when requests wait for a database connection. */
  owner: string
  /** Undefined without an Idempotency-Key. */
  once: IdempotentRequest | undefined
}

/** Limits how long the transaction of a batch holds its locks. */
const maxWritesInBatch = 32

/** Returns the function that runs the writes of a route, each in its own transaction or in batches. */
export function writerOf(
  id: RouteId,
  route: Route,
  handler: Handler<RouteId>,
  services: HttpServices,
): (write: Write) => Promise<StoredResponse> {
  const { database } = services
  const respond = (tx: Tx, { contextIn, once }: Write) =>
    runOnce(tx, once, async () => {
      const result = await runIfAllowed(tx, contextIn(tx))
      if (route.isAudited && !tx.hasSignaled('events')) throw new Error(`${id} wrote no audit event`)
      return jsonTextOf(result)
    })
  async function runIfAllowed(tx: Tx, context: Context) {
    const check = requireStillAllowed(tx, route, context)
    // On a batched route, handler and check run concurrently: the caller was authorized a moment ago, and
    // nothing commits if the check fails.
    if (route.isBatched) return (await allSettledThenThrow([check, handler(context)]))[1]
    await check
    return handler(context)
  }
  if (!route.isBatched)
    return (write) => database.transaction((tx) => respond(tx, write), { owner: write.owner })

  return inSharedTransactions(database, {
    maxItems: maxWritesInBatch,
    work: respond,
    didCommit: (results) => operationsExist(services, results),
    ownerOf: ({ owner }) => owner,
  })
}

/**
 * Checks access again with the data of the transaction: a caller who was suspended, or who lost a key, a role
 * or the payment method before the transaction began, must not change anything.
 */
async function requireStillAllowed(tx: Tx, route: Route, { caller, request }: Context): Promise<void> {
  if (!caller) return
  const access = accesses.get(tx.batch) ?? new Access(withSharedReads(tx.batch))
  accesses.set(tx.batch, access)
  await access.grant(route, request)
}

/** Shared by the requests of a batch, which read their callers together. */
const accesses = new WeakMap<Tx, Access>()

/**
 * Called after a commit with an unknown outcome. Returns whether the commit took place: it did if the
 * operations exist.
 */
async function operationsExist(
  { database }: HttpServices,
  results: BatchResult<StoredResponse>[],
): Promise<boolean> {
  const ids = results.flatMap((result) =>
    result instanceof Error || result.isReplay ? [] : operationIdOf(result),
  )
  const found = await Promise.all(ids.map((id) => findAnyOperation(database, id))).catch(() => [undefined])
  return found.every((operation) => operation !== undefined)
}

const operationIdOf = ({ text }: StoredResponse): string =>
  (JSON.parse(text) as { operation: { operation_id: string } }).operation.operation_id
