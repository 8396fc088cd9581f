import type { EventType, OrganizationQuotaName } from '@slipway/contract'
import { notFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { setOrganizationQuotas } from '../store/compute/organization-quotas.ts'
import type { Tx } from '../store/database.ts'
import { emit, type Requester } from '../store/events/events.ts'
import {
  insertOrganization,
  type OrganizationRow,
  suspendOrganization,
} from '../store/identity/organizations.ts'

export async function createOrganization(
  tx: Tx,
  by: Requester,
  name: string,
  quotas: Record<OrganizationQuotaName, number>,
): Promise<OrganizationRow> {
  const row = await insertOrganization(tx, uuid(), name)
  await setOrganizationQuotas(tx, row.id, quotas)
  await emitOrganization(tx, by, 'organization.created', row)
  return row
}

export async function setOrganizationSuspended(
  tx: Tx,
  by: Requester,
  id: string,
  isSuspended: boolean,
): Promise<OrganizationRow> {
  const row = await suspendOrganization(tx, id, isSuspended)
  if (!row) throw notFound('organization')
  await emitOrganization(tx, by, isSuspended ? 'organization.suspended' : 'organization.restored', row)
  tx.signal('access')
  return row
}

const emitOrganization = (tx: Tx, by: Requester, type: EventType, row: OrganizationRow): Promise<void> =>
  emit(tx, {
    ...by,
    type,
    resourceType: 'organization',
    resourceId: row.id,
    organizationId: row.id,
    data: { name: row.name },
  })
