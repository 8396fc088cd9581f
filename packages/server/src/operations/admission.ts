import type { CountedQuotaName, EventType, Labels } from '@slipway/contract'
import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import type { Tx } from '../postgres/database.ts'
import { type AdmittedOperation, writeOperation, writeOperationAtCommit } from '../runner/begin.ts'
import { cancelled, type Definition, next, type Outcome, type Work, wait } from '../runner/operation.ts'
import { endOperations } from '../store/compute/operation-changes.ts'
import type { BegunOperation, OperationRow } from '../store/compute/operation-row.ts'
import {
  cancelOperation,
  findUnfinishedOperation,
  hasOtherUnfinished,
  lockUnfinishedOperations,
} from '../store/compute/operations.ts'
import { findExceededQuota } from '../store/compute/organization-quotas.ts'
import { type QuotaAmounts, type QuotaShortage, readQuotas, takeQuota } from '../store/compute/quotas.ts'
import { emit, type Requester } from '../store/events/events.ts'

const cancelPauseMs = 500

/** The caller on whose behalf an operation is admitted, and the project of the operation. */
export interface ProjectRequester extends Requester {
  projectId: string
}

interface Admission {
  /** `location` is where the engine does the work; absent if the operation uses several locations. */
  resource: { id: string; name: string; location?: string; labels?: Labels }
  generation: number
  /** Echoed in `metadata.request`. */
  request?: unknown
  scratch?: Record<string, unknown>
  eventType: EventType
  /** Data of the event in addition to the resource's name and labels. */
  eventData?: Record<string, unknown>
  prefetch?: AdmittedOperation['prefetch']
  /**
   * The service's time, if the admission has read it. If set, the operation is written together with the
   * commit.
   */
  startedAt?: Date
}

/** Writes the operation and its event in the transaction that makes the claims. */
export async function beginOperation(
  tx: Tx,
  requester: ProjectRequester,
  definition: Definition,
  admission: Admission,
): Promise<BegunOperation> {
  const { resource, startedAt, eventData } = admission
  const [firstStep] = definition.steps
  const operation: AdmittedOperation = {
    id: uuid(),
    projectId: requester.projectId,
    organizationId: requester.organizationId,
    actor: requester.actor,
    requestId: requester.requestId,
    clientAddress: requester.clientAddress,
    kind: definition.kind,
    name: definition.name,
    resourceType: definition.resourceType,
    resourceId: resource.id,
    location: resource.location ?? '',
    generation: admission.generation,
    request: admission.request ?? {},
    scratch: admission.scratch ?? {},
    // If the first step has no work, the admission completes it.
    admittedStep: firstStep && !firstStep.tx && !firstStep.call ? firstStep.name : null,
    event: {
      type: admission.eventType,
      data: { name: resource.name, ...(resource.labels && { labels: resource.labels }), ...eventData },
    },
    prefetch: admission.prefetch,
  }
  return startedAt ? writeOperationAtCommit(tx, { ...operation, startedAt }) : writeOperation(tx, operation)
}

/**
 * If an operation on the resource is unfinished, throws a 409 that names the operation. The caller has locked the
 * resource's row.
 */
export async function requireNoOperation(tx: Tx, resourceId: string, what: string): Promise<void> {
  const [busy] = await lockUnfinishedOperations(tx, resourceId)
  if (busy)
    throw new Failure(
      'conflict',
      `${what} is busy: operation ${busy.id} (${busy.name}) is in progress. Wait until it has finished.`,
      { details: { operation_id: busy.id } },
    )
}

/**
 * Returns a 409 that names the unfinished operation of the resource, if there is one, so that the client can
 * wait for it.
 */
export async function blockedBy(tx: Tx, resourceId: string, message: string): Promise<Failure> {
  const operation = await findUnfinishedOperation(tx, resourceId)
  return new Failure('conflict', message, { details: operation && { operation_id: operation.id } })
}

/**
 * Cancels the unfinished operations of a resource that is to be deleted. An operation without a lease ends here; any other
 * operation ends at its next step boundary. If a deletion is already in progress, this only records the repeated request and
 * returns that deletion.
 */
export async function cancelForDeletion(
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

/** The first step of a deletion: a cancelled operation may be in the middle of an engine call, which must end first. */
export async function waitForCancelledOperations({ operation, services }: Work): Promise<Outcome> {
  return (await hasOtherUnfinished(services.database, operation)) ? wait(cancelPauseMs) : next()
}

/** Returns a 403 that names the quota and its holder. */
export const quotaExceeded = ({ name, holder, available, requested }: QuotaShortage) =>
  new Failure(
    'quota_exceeded',
    `quota exceeded: ${name} of the ${holder} (${available} left, but this request needs ${requested}). Ask an operator for a higher quota, or delete resources.`,
  )

/**
 * Takes the amounts or throws a 403. Called last, so that the quota rows are locked as briefly as possible.
 */
export async function requireQuota(tx: Tx, projectId: string, amounts: QuotaAmounts): Promise<void> {
  const request = { projectId, amounts }
  const shortage = (await readQuotas(tx, request)).take(request)
  if (shortage) throw quotaExceeded(shortage)
  await takeQuota(tx, request)
}

/** Throws a 403 if the organization now has more than its quotas allow. Called after the insert, as the last check. */
export async function requireOrganizationQuota(
  tx: Tx,
  { organizationId }: Pick<Requester, 'organizationId'>,
  ...names: CountedQuotaName[]
): Promise<void> {
  if (organizationId === null)
    throw new Error(`cannot check the quota ${names.join(', ')}: the caller has no organization`)
  const full = await findExceededQuota(tx, organizationId, names)
  if (full)
    throw new Failure(
      'quota_exceeded',
      `quota exceeded: ${full.name} of the organization (limit: ${full.max}). Ask an operator for a higher quota, or delete resources.`,
    )
}
