import type { CountedQuotaName, EventType } from '@slipway/contract'
import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import type { Tx } from '../postgres/database.ts'
import {
  type Beginning as OperationBeginning,
  writeOperation,
  writeOperationAtCommit,
} from '../runner/begin.ts'
import { cancelled, type Definition, next, type Outcome, type Work, wait } from '../runner/operation.ts'
import { endOperations } from '../store/compute/operation-changes.ts'
import type { BegunOperation, OperationRow } from '../store/compute/operation-row.ts'
import { cancelOperation, hasOtherUnfinished, lockUnfinishedOperations } from '../store/compute/operations.ts'
import { findOverfull } from '../store/compute/organization-quotas.ts'
import { type QuotaAmounts, type QuotaShortage, readQuotas, takeQuota } from '../store/compute/quotas.ts'
import { emit, type Requester } from '../store/events/events.ts'

const cancelPauseMs = 500

/** On whose behalf an operation is admitted. */
export interface ProjectRequester extends Requester {
  projectId: string
}

export interface Beginning {
  resourceId: string
  /** Where its engine work is done; '' if in many places. */
  location: string
  generation: number
  /** Echoed in `metadata.request`. */
  request: unknown
  scratch?: Record<string, unknown>
  eventType: EventType
  eventData?: Record<string, unknown>
  readAhead?: NonNullable<OperationBeginning['readAhead']>
  /** The service's time, if it is known: then the operation is written together with the commit. */
  startedAt?: Date
}

/** Writes the operation and its event in the transaction that makes the claims. */
export async function beginOperation(
  tx: Tx,
  by: ProjectRequester,
  { kind, name, resourceType, steps: [first] }: Definition,
  { eventType, eventData, scratch, startedAt, ...beginning }: Beginning,
): Promise<BegunOperation> {
  const { projectId, actor, requestId, clientAddress } = by
  const operation: OperationBeginning = {
    ...{ id: uuid(), projectId, actor, requestId, clientAddress, kind, name, resourceType },
    ...beginning,
    scratch: scratch ?? {},
    admittedStep: first && !first.tx && !first.call ? first.name : null,
    event: { type: eventType, data: eventData ?? {} },
  }
  return startedAt ? writeOperationAtCommit(tx, { ...operation, startedAt }) : writeOperation(tx, operation)
}

/** 409 that names the operation under way. The caller holds the resource's row. */
export async function requireIdle(tx: Tx, resourceId: string, what: string): Promise<void> {
  const [busy] = await lockUnfinishedOperations(tx, resourceId)
  if (busy)
    throw new Failure(
      'conflict',
      `${what} is busy: operation ${busy.id} (${busy.name}) is under way. Wait for it to end.`,
    )
}

/**
 * Makes way for the deletion of a resource. Returns the deletion that is already under way, if there is one: a repeated
 * request changes nothing, and is on record. Cancels any other operation: one that no worker holds ends here, another one at
 * its next step boundary.
 */
export async function makeWayForDeletion(
  tx: Tx,
  { resourceType }: Definition,
  by: ProjectRequester,
  resourceId: string,
): Promise<OperationRow | undefined> {
  const unfinished = await lockUnfinishedOperations(tx, resourceId)
  const deletion = unfinished.find(({ name }) => name === 'DELETE')
  if (deletion) {
    const type = `${resourceType}.deletion_repeated` as const
    await emit(tx, { ...by, type, resourceType, resourceId, data: { operation_id: deletion.id } })
    return deletion
  }
  for (const { id } of unfinished) {
    await cancelOperation(tx, id)
    await endOperations(tx, [{ id, token: null, state: 'FAILED', result: cancelled, stepLog: null }])
  }
  return undefined
}

/** The first step of a deletion: what it cancelled may be in the middle of an engine call, and has to let go first. */
export async function awaitCancelled({ operation, services }: Work): Promise<Outcome> {
  return (await hasOtherUnfinished(services.database, operation)) ? wait(cancelPauseMs) : next()
}

/** 403 that names the quota and whose it is. */
export const quotaExceeded = ({ name, holder, available, requested }: QuotaShortage) =>
  new Failure(
    'quota_exceeded',
    `quota exceeded: ${name} of the ${holder} has ${available} left and this needs ${requested}. Ask an operator for more, or delete something.`,
  )

/** Takes it, or throws the 403. Called last, so that its rows are locked for the shortest time. */
export async function requireQuota(tx: Tx, projectId: string, amounts: QuotaAmounts): Promise<void> {
  const request = { projectId, amounts }
  const shortage = (await readQuotas(tx, request)).take(request)
  if (shortage) throw quotaExceeded(shortage)
  await takeQuota(tx, request)
}

/** 403 that names the organization's quota, when what was just added is more than it allows. Called last, too. */
export async function requireRoom(
  tx: Tx,
  { organizationId }: Pick<Requester, 'organizationId'>,
  ...names: CountedQuotaName[]
): Promise<void> {
  if (organizationId === null) throw new Error(`${names[0]} are counted in an organization`)
  const full = await findOverfull(tx, organizationId, names)
  if (full)
    throw new Failure(
      'quota_exceeded',
      `quota exceeded: ${full.name} of the organization are limited to ${full.max}. Ask an operator for more, or delete something.`,
    )
}
