import type { QuotaName } from '@slipway/contract'
import { invalidField, notFound } from '../domain/failure.ts'
import { listQuotas, type QuotaRow, setQuotas } from '../store/compute/quotas.ts'
import type { Queryable, Tx } from '../store/database.ts'
import { emit, type Requester } from '../store/events/events.ts'
import { findProjectScope, type ProjectScope } from '../store/identity/access.ts'

export async function changeQuotas(
  tx: Tx,
  by: Requester,
  projectId: string,
  items: { name: QuotaName; max: number }[],
): Promise<void> {
  const project = await requireProject(tx, projectId)
  items.forEach(({ name }, i) => {
    if (items.findIndex((item) => item.name === name) < i)
      throw invalidField(`items/${i}/name`, `${name} is named twice`)
  })
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

/** 404 for a project that does not exist. */
export async function readQuotas(db: Queryable, projectId: string): Promise<QuotaRow[]> {
  await requireProject(db, projectId)
  return listQuotas(db, projectId)
}

async function requireProject(db: Queryable, id: string): Promise<ProjectScope> {
  const project = await findProjectScope(db, id)
  if (!project) throw notFound('project')
  return project
}
