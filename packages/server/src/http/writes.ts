import type { Route, RouteId } from '@slipway/contract'
import { Failure } from '../domain/failure.ts'
import { alone, Batches, type Settled } from '../store/batches.ts'
import { findAnyOperation } from '../store/compute/operations.ts'
import { type Tx, UnknownOutcome } from '../store/database.ts'
import { jsonTextOf } from '../store/json.ts'
import { withSharedReads } from '../store/keyed.ts'
import { Access } from './access.ts'
import type { Context, Handler, HttpServices, ListHandler } from './context.ts'
import { type Answer, type IdempotentRequest, isAnswer, onceOnly } from './idempotency.ts'

/** A request that changes something. */
export interface Write {
  contextIn(tx: Tx): Context
  /** If it has an Idempotency-Key. */
  once: IdempotentRequest | undefined
}

/** So many share a transaction at most: it holds its locks for no longer than these take. */
const mostTogether = 32

/** Returns what answers the requests of a route: each in a transaction of its own, or all that come together in one. */
export function writerOf(
  id: RouteId,
  route: Route,
  handler: Handler<RouteId> | ListHandler<RouteId>,
  services: HttpServices,
): (write: Write) => Promise<Answer> {
  const { database } = services
  if (typeof handler === 'function')
    return (write) =>
      database.transaction(async (tx) => {
        const [answer] = await onceOnly(tx, [write.once], async () => {
          const context = write.contextIn(tx)
          const [refusal] = await refusalsOf(tx, route, [context])
          if (refusal) throw refusal
          const text = jsonTextOf(await handler(context))
          requireAudit(id, route, tx)
          return [text]
        })
        if (answer instanceof Failure) throw answer
        return answer as Answer
      })

  const batches = new Batches<Write, Answer>({
    most: mostTogether,
    conflictsOf: (write) => [
      ...handler.conflictsOf(write.contextIn(database.withoutTransaction)),
      ...(write.once ? [`key ${write.once.caller} ${write.once.key}`] : []),
    ],
    work: (writes, isAlone) => answerTogether(id, route, handler, services, writes, isAlone),
  })
  return (write) => batches.submit(write)
}

/** What became of it, thrown if it failed. */
function outcomeOf<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === 'rejected') throw settled.reason
  return settled.value
}

/** Nobody was admitted: whatever was locked or written goes. */
class NobodyAdmitted extends Error {}

async function answerTogether(
  id: RouteId,
  route: Route,
  handler: ListHandler<RouteId>,
  services: HttpServices,
  writes: Write[],
  isAlone: boolean,
): Promise<Settled<Answer>[]> {
  let settled: Settled<Answer>[] = []
  const operationIds = new Map<string, string>()
  try {
    await services.database.transaction(async (tx) => {
      // Of an earlier attempt nothing stands.
      operationIds.clear()
      const work = async (places: number[]) => {
        const contexts = places.map((place) => writes[place]!.contextIn(tx))
        // All of them were let in a moment ago, so that nobody waits for the second look, but the transaction.
        const [looked, answering] = await Promise.allSettled([
          refusalsOf(tx, route, contexts),
          handler.answer(contexts, isAlone),
        ])
        const refusal = outcomeOf(looked).find((each) => each !== undefined)
        if (refusal) throw refusal
        return outcomeOf(answering).map((outcome) => {
          if (outcome === alone || outcome instanceof Failure) return outcome
          const text = JSON.stringify(outcome)
          operationIds.set(text, outcome.operation.operation_id)
          return text
        })
      }
      settled = await onceOnly(
        tx,
        writes.map(({ once }) => once),
        work,
      )
      if (!settled.some(isAnswer)) throw new NobodyAdmitted()
      if (operationIds.size > 0) requireAudit(id, route, tx)
    })
    return settled
  } catch (error) {
    if (error instanceof NobodyAdmitted) return settled
    if (error instanceof UnknownOutcome) return afterUnknown(services, settled, operationIds, error)
    throw error
  }
}

/**
 * Looks again who may make these requests, by what the transaction sees: whoever was suspended or lost a key, a role or
 * a means of payment before it began changes nothing.
 */
function refusalsOf(tx: Tx, route: Route, contexts: Context[]): Promise<(Failure | undefined)[]> {
  const access = new Access(withSharedReads(tx))
  return Promise.all(
    contexts.map(async ({ caller, request }) => {
      if (!caller) return undefined
      return access.grant(route, request).then(
        () => undefined,
        (error) => {
          if (error instanceof Failure) return error
          throw error
        },
      )
    }),
  )
}

/** If the operations can be seen, it has happened. If not, it may still happen, and is not tried again. */
async function afterUnknown(
  { database }: HttpServices,
  settled: Settled<Answer>[],
  operationIds: Map<string, string>,
  error: UnknownOutcome,
): Promise<Settled<Answer>[]> {
  const looks = [...operationIds.values()].map((id) => findAnyOperation(database, id))
  const found = await Promise.all(looks).catch(() => [undefined])
  if (!found.every((operation) => operation !== undefined)) throw error
  return settled
}

function requireAudit(id: RouteId, route: Route, tx: Tx): void {
  if (route.isAudited && !tx.hasSignalled('events')) throw new Error(`${id} wrote no audit event`)
}
