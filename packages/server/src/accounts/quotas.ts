import type { OrganizationQuotaName, QuotaName } from '@slipway/contract'
import { invalidField, notFound } from '../domain/failure.ts'
import type { Queryable, Tx } from '../postgres/database.ts'
import {
  listOrganizationQuotas,
  type OrganizationQuotaRow,
  setOrganizationQuotas,
} from '../store/compute/organization-quotas.ts'
import { listQuotas, type QuotaRow, setQuotas } from '../store/compute/quotas.ts'
import { emit, type Requester } from '../store/events/events.ts'
import { findProjectScope, type ProjectScope } from '../store/identity/access.ts'
import { findOrganization } from '../store/identity/organizations.ts'

/** Of a project, within those of its organization; null takes a limit away. */
export async function changeQuotas(
  tx: Tx,
  by: Requester,
  projectId: string,
  items: { name: QuotaName; max: number | null }[],
): Promise<void> {
  const project = await requireProject(tx, projectId)
  refuseRepeated(items)
  await setQuotas(tx, projectId, items)
  await emit(tx, {
    ...by,
    type: 'quotas.updated',
    resourceType: 'project',
    resourceId: projectId,
    projectId,
    organizationId: project.organizationId,
    data: { items },
  })
}

/** Of an organization, for all its projects together. */
export async function changeOrganizationQuotas(
  tx: Tx,
  by: Requester,
  organizationId: string,
  items: { name: OrganizationQuotaName; max: number }[],
): Promise<void> {
  await requireOrganization(tx, organizationId)
  refuseRepeated(items)
  await setOrganizationQuotas(
    tx,
    organizationId,
    Object.fromEntries(items.map(({ name, max }) => [name, max])),
  )
  await emit(tx, {
    ...by,
    type: 'quotas.updated',
    resourceType: 'organization',
    resourceId: organizationId,
    organizationId,
    data: { items },
  })
}

/** 404 for a project that does not exist. */
export async function readQuotas(db: Queryable, projectId: string): Promise<QuotaRow[]> {
  await requireProject(db, projectId)
  return listQuotas(db, projectId)
}

/** 404 for an organization that does not exist. */
export async function readOrganizationQuotas(
  db: Queryable,
  organizationId: string,
): Promise<OrganizationQuotaRow[]> {
  await requireOrganization(db, organizationId)
  return listOrganizationQuotas(db, organizationId)
}

function refuseRepeated(items: { name: string }[]): void {
  items.forEach(({ name }, i) => {
    if (items.findIndex((item) => item.name === name) < i)
      throw invalidField(`items/${i}/name`, `${name} is named twice`)
  })
}

async function requireProject(db: Queryable, id: string): Promise<ProjectScope> {
  const project = await findProjectScope(db, id)
  if (!project) throw notFound('project')
  return project
}

async function requireOrganization(db: Queryable, id: string): Promise<void> {
  if (!(await findOrganization(db, id))) throw notFound('organization')
}
