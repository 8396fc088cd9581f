import { type CapacityRequestCreate, type Labels, maxHoldSeconds, maxWaitDays } from '@slipway/contract'
import { Failure, invalidField, requireFound } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { TryAgain, type Tx, violatedConstraint } from '../../postgres/database.ts'
import { readServiceTime } from '../../postgres/ping.ts'
import { endHolds, lockHosts } from '../../store/capacity/holds.ts'
import { deleteEntries, queueRequest } from '../../store/capacity/queue-entries.ts'
import { lockQueues, lockQueuesOfRequest, touchQueuesOfRequest } from '../../store/capacity/queues.ts'
import {
  endRequest,
  findRequest,
  findRequestRecord,
  insertRequest,
  type RequestRecordRow,
  type RequestRow,
  updateRequest,
} from '../../store/capacity/requests.ts'
import type { OrganizationRequester } from '../../store/events/events.ts'
import { type ProjectRequester, requireOrganizationQuota } from '../admission.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { emitRequest } from './events.ts'
import { offerGpus } from './offer.ts'
import { readWanted } from './wanted.ts'

type By = ProjectRequester & OrganizationRequester

/** Adds a request to the queues of its locations. GPUs in stock are offered to it right after the commit. */
export async function createRequest(
  tx: Tx,
  catalogue: CatalogueCache,
  by: By,
  given: CapacityRequestCreate,
): Promise<RequestRecordRow> {
  const { body, type, vms, isSpread, ttlSeconds, amounts, candidates } = await readWanted(
    tx,
    catalogue,
    by,
    given,
  )
  const { family, gpuCount } = type
  const request = await insertRequest(tx, {
    id: uuid(),
    organizationId: by.organizationId,
    projectId: by.projectId,
    onAvailable: body.on_available ?? 'create',
    holdSeconds: body.hold_seconds ?? maxHoldSeconds,
    body: JSON.stringify(body),
    startVmId: body.start_vm_id ?? null,
    family,
    gpus: gpuCount * vms,
    ttlSeconds,
    amounts,
    labels: body.labels ?? {},
    until: await parseUntil(tx, body.until),
    actor: by.actor,
    requestId: by.requestId,
  }).catch((error) => {
    throw violatedConstraint(error) === 'capacity_requests_start'
      ? new Failure('conflict', 'A capacity request is already waiting to start this VM.')
      : error
  })
  await lockQueues(
    tx,
    candidates.map(({ location }) => ({ location, family })),
  )
  const { id, organization_id: organizationId } = request
  for (const { location, hostId } of candidates)
    await queueRequest(
      tx,
      { location, family },
      { id, organizationId, gpus: gpuCount, vms, isSpread, hostId },
    )
  await touchQueuesOfRequest(tx, id)
  await requireOrganizationQuota(tx, by, 'capacity_requests')
  await emitRequest(tx, 'capacity_request.created', request, by)
  tx.signal('capacity')
  return (await findRequestRecord(tx, by.projectId, id))!
}

async function parseUntil(tx: Tx, until: string | undefined): Promise<Date | null> {
  if (until === undefined) return null
  const at = new Date(until)
  const now = await readServiceTime(tx)
  if (at <= now) throw invalidField('until', 'must be in the future')
  if (at.getTime() > now.getTime() + maxWaitDays * 86_400_000)
    throw invalidField('until', `must be within ${maxWaitDays} days`)
  return at
}

export async function changeRequest(
  tx: Tx,
  by: By,
  id: string,
  change: { until?: string; labels?: Labels },
): Promise<RequestRecordRow> {
  if (Object.keys(change).length === 0)
    throw new Failure('invalid_argument', 'Send at least one field to change: until or labels.')
  const { projectId } = by
  const before = requireFound('capacity request', await findRequestRecord(tx, projectId, id))
  const until = await parseUntil(tx, change.until)
  const request = await updateRequest(tx, { projectId, id, until, labels: change.labels ?? null })
  if (!request) throw alreadyEndedFailure(before)
  await emitRequest(tx, 'capacity_request.updated', request, by)
  return (await findRequestRecord(tx, projectId, id))!
}

/** Ends the request. The GPUs that are held for it are offered to other requests. */
export async function cancelRequest(tx: Tx, by: By, id: string): Promise<RequestRecordRow> {
  const request = requireFound('capacity request', await findRequestRecord(tx, by.projectId, id))
  if (!(await endAndOffer(tx, request, 'cancelled', by))) throw alreadyEndedFailure(request)
  return (await findRequestRecord(tx, by.projectId, id))!
}

/**
 * Ends a request that is waiting or has held GPUs, and offers those GPUs to other requests. Returns false if the request had
 * already ended.
 */
export async function endAndOffer(
  tx: Tx,
  { id, held_hosts }: Pick<RequestRow, 'id' | 'held_hosts'>,
  to: 'cancelled' | 'expired' | 'failed',
  by?: By,
  error?: { code: string; message: string },
): Promise<boolean> {
  const isHeld = held_hosts.length > 0
  if (isHeld) {
    await lockHosts(tx, held_hosts)
    await endHolds(tx, id, held_hosts)
  }
  await lockQueuesOfRequest(tx, id)
  await touchQueuesOfRequest(tx, id)
  await deleteEntries(tx, id)
  const ended = await endRequest(tx, {
    id,
    from: isHeld ? 'held' : 'waiting',
    to,
    resourceId: null,
    operationId: null,
    error: error ? JSON.stringify(error) : null,
  })
  if (!ended) {
    // `due_at` is null after the end. Otherwise another transaction changed the state since it was read: retry.
    if ((await findRequest(tx, id))?.due_at) throw new TryAgain('the state of the request has changed')
    return false
  }
  await emitRequest(tx, `capacity_request.${to}`, ended, by)
  if (isHeld) await offerGpus(tx, held_hosts)
  tx.signal('capacity')
  return true
}

const alreadyEndedFailure = ({ state }: Pick<RequestRow, 'state'>) =>
  new Failure('conflict', `The capacity request has already ended. Its state is ${state}.`)
