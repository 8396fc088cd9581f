import type { CountedQuotaName, EventType } from '@slipway/contract'
import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { cancelled, type Definition, next, type Outcome, type Work, wait } from '../runner/operation.ts'
import {
  cancelOperation,
  endOperations,
  hasOtherUnfinished,
  insertOperation,
  lockUnfinishedOperations,
  type NewOperation,
  type OperationRow,
} from '../store/compute/operations.ts'
import { findOverfull } from '../store/compute/organization-quotas.ts'
import { type QuotaAmounts, type QuotaShortage, readQuotas, takeQuota } from '../store/compute/quotas.ts'
import type { Tx } from '../store/database.ts'
import { emit, type Requester } from '../store/events/events.ts'

const cancelPauseMs = 500

/** On whose behalf an operation is admitted. */
export interface ProjectRequester extends Requester {
  projectId: string
}

interface Beginning {
  resourceId: string
  /** Where its engine work is done; '' if in many places. */
  location: string
  generation: number
  /** Echoed in `metadata.request`. */
  request: unknown
  scratch?: Record<string, unknown>
  eventType: EventType
  eventData?: Record<string, unknown>
  readAhead?: NonNullable<NewOperation['readAhead']>
}

/** Writes the operation and its event in the transaction that makes the claims. */
export async function beginOperation(
  tx: Tx,
  by: ProjectRequester,
  definition: Definition,
  beginning: Beginning,
): Promise<OperationRow> {
  return insertOperation(tx, operationOf(by, definition, beginning))
}

/** What is written for it. */
export function operationOf(
  by: ProjectRequester,
  definition: Definition,
  beginning: Beginning,
): NewOperation {
  const [first] = definition.steps
  return {
    id: uuid(),
    projectId: by.projectId,
    kind: definition.kind,
    name: definition.name,
    resourceType: definition.resourceType,
    resourceId: beginning.resourceId,
    location: beginning.location,
    generation: beginning.generation,
    request: beginning.request,
    scratch: beginning.scratch ?? {},
    actor: by.actor,
    requestId: by.requestId,
    clientAddress: by.clientAddress,
    admittedStep: first && !first.tx && !first.call ? first.name : null,
    event: { type: beginning.eventType, data: beginning.eventData ?? {} },
    ...(beginning.readAhead && { readAhead: beginning.readAhead }),
  }
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
