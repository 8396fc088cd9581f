import type { OrganizationQuotaName, QuotaName } from '@slipway/contract'
import { invalidField, requireFound } from '../domain/failure.ts'
import type { Queryable, Tx } from '../postgres/database.ts'
import { recheckBlocked } from '../store/capacity/requests.ts'
import {
  listOrganizationQuotas,
  type OrganizationQuotaRow,
  setOrganizationQuotas,
} from '../store/compute/organization-quotas.ts'
import { listQuotas, type QuotaRow, setQuotas } from '../store/compute/quotas.ts'
import { emit, type Requester } from '../store/events/events.ts'
import { findProjectScope } from '../store/identity/access.ts'
import { findOrganization } from '../store/identity/organizations.ts'

/** Changes quotas of a project. A `max` of null removes the quota. The quotas of the organization apply as well. */
export async function changeQuotas(
  tx: Tx,
  by: Requester,
  projectId: string,
  items: { name: QuotaName; max: number | null }[],
): Promise<void> {
  const { organizationId } = requireFound('project', await findProjectScope(tx, projectId))
  refuseRepeated(items)
  await setQuotas(tx, projectId, items)
  await recheckBlocked(tx, organizationId)
  tx.signal('capacity')
  await emit(tx, {
    ...by,
    type: 'quotas.updated',
    resourceType: 'project',
    resourceId: projectId,
    projectId,
    organizationId,
    data: { items },
  })
}

/** Changes quotas of an organization, which apply to all its projects together. */
export async function changeOrganizationQuotas(
  tx: Tx,
  by: Requester,
  organizationId: string,
  items: { name: OrganizationQuotaName; max: number }[],
): Promise<void> {
  requireFound('organization', await findOrganization(tx, organizationId))
  refuseRepeated(items)
  await setOrganizationQuotas(
    tx,
    organizationId,
    Object.fromEntries(items.map(({ name, max }) => [name, max])),
  )
  await recheckBlocked(tx, organizationId)
  tx.signal('capacity')
  await emit(tx, {
    ...by,
    type: 'quotas.updated',
    resourceType: 'organization',
    resourceId: organizationId,
    organizationId,
    data: { items },
  })
}

export async function readQuotas(db: Queryable, projectId: string): Promise<QuotaRow[]> {
  requireFound('project', await findProjectScope(db, projectId))
  return listQuotas(db, projectId)
}

export async function readOrganizationQuotas(
  db: Queryable,
  organizationId: string,
): Promise<OrganizationQuotaRow[]> {
  requireFound('organization', await findOrganization(db, organizationId))
  return listOrganizationQuotas(db, organizationId)
}

function refuseRepeated(items: { name: string }[]): void {
  items.forEach(({ name }, i) => {
    if (items.findIndex((item) => item.name === name) < i)
      throw invalidField(`items/${i}/name`, `${name} is listed twice`)
  })
}
