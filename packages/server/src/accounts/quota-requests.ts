import type { EventType, OrganizationQuotaName } from '@slipway/contract'
import { Failure, invalidField, requireFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import type { Tx } from '../postgres/database.ts'
import { listOrganizationQuotas } from '../store/compute/organization-quotas.ts'
import { emit, type OrganizationRequester, type Requester } from '../store/events/events.ts'
import {
  decideQuotaRequest,
  deleteQuotaRequest,
  insertQuotaRequest,
  lockQuotaRequest,
  type QuotaRequestRow,
} from '../store/identity/quota-requests.ts'
import { changeOrganizationQuotas } from './quotas.ts'

export async function createQuotaRequest(
  tx: Tx,
  by: OrganizationRequester,
  given: { name: OrganizationQuotaName; max: number; reason: string },
): Promise<QuotaRequestRow> {
  const quotas = await listOrganizationQuotas(tx, by.organizationId)
  const current = quotas.find(({ name }) => name === given.name)?.max ?? 0
  if (given.max <= current)
    throw invalidField('max', `must be higher than the current quota, which is ${current}`)
  const row = await insertQuotaRequest(tx, {
    ...given,
    id: uuid(),
    organizationId: by.organizationId,
    requestedBy: by.actor,
  })
  if (!row)
    throw new Failure(
      'already_exists',
      `A request for the quota ${given.name} is already open. Withdraw it before you create another one.`,
    )
  await emitQuotaRequest(tx, by, 'quota_request.created', row)
  return row
}

export async function withdrawQuotaRequest(tx: Tx, by: OrganizationRequester, id: string): Promise<void> {
  const found = await lockQuotaRequest(tx, id)
  const row = requireFound('quota request', found?.organization_id === by.organizationId ? found : undefined)
  requireOpen(row)
  await deleteQuotaRequest(tx, id)
  await emitQuotaRequest(tx, by, 'quota_request.withdrawn', row)
}

/** Approval raises the quota. It never lowers a quota that an operator has raised further in the meantime. */
export async function decideOnQuotaRequest(
  tx: Tx,
  by: Requester,
  id: string,
  { state, note = '' }: { state: 'approved' | 'rejected'; note?: string },
): Promise<QuotaRequestRow> {
  const request = requireFound('quota request', await lockQuotaRequest(tx, id))
  requireOpen(request)
  const { organization_id, name, max, current_max } = request
  if (state === 'approved' && max > current_max)
    await changeOrganizationQuotas(tx, by, organization_id, [{ name, max }])
  const row = (await decideQuotaRequest(tx, id, state, note))!
  await emitQuotaRequest(tx, by, `quota_request.${state}`, row)
  return row
}

function requireOpen({ name, state }: QuotaRequestRow): void {
  if (state !== 'open')
    throw new Failure(
      'conflict',
      `The request for the quota ${name} is already ${state}. Create another request to change the quota.`,
    )
}

const emitQuotaRequest = (
  tx: Tx,
  by: Requester,
  type: EventType,
  { id, organization_id, name, max, reason, note }: QuotaRequestRow,
): Promise<void> =>
  emit(tx, {
    ...by,
    type,
    resourceType: 'quota_request',
    resourceId: id,
    organizationId: organization_id,
    data: { name, max, reason, note },
  })
