import type { EventType, Labels } from '@slipway/contract'
import { Failure, notFound, requireFound } from '../domain/failure.ts'
import type { ProjectRequester } from '../operations/admission.ts'
import type { Tx } from '../postgres/database.ts'
import { deleteInstanceTemplatesOfProject } from '../store/compute/instance-templates.ts'
import { deleteQuotas } from '../store/compute/quotas.ts'
import { deleteSshKeysOfProject } from '../store/compute/ssh-keys.ts'
import { emit, type Requester } from '../store/events/events.ts'
import { revokeAccessKeysOfProject } from '../store/identity/access-keys.ts'
import {
  countProjectContents,
  deleteProject as deleteProjectRow,
  findProject,
  type ProjectRow,
  updateProject,
} from '../store/identity/projects.ts'
import { projectView } from '../views/identity.ts'
import { type NewProject, refuseTakenName, setUpProject } from './project-setup.ts'

export async function createProject(tx: Tx, by: Requester, project: NewProject): Promise<ProjectRow> {
  const row = await setUpProject(tx, project)
  await emitProject(tx, by, 'project.created', row)
  return row
}

export async function changeProject(
  tx: Tx,
  by: ProjectRequester,
  change: { name?: string; labels?: Labels },
): Promise<ProjectRow> {
  if (Object.keys(change).length === 0)
    throw new Failure('invalid_argument', 'Send at least one field to change: name or labels.')
  const row = requireFound('project', await updateProject(tx, by.projectId, change).catch(refuseTakenName))
  await emitProject(tx, by, 'project.updated', row)
  return row
}

/** Deletes an empty project and its keys. */
export async function deleteProject(tx: Tx, by: ProjectRequester): Promise<void> {
  const row = requireFound('project', await findProject(tx, by.projectId))
  // Without quotas, nothing more can be created in the project.
  await deleteQuotas(tx, row.id)
  const contents = await countProjectContents(tx, row.id)
  const remaining = Object.entries(contents).filter(([, count]) => count > 0)
  if (remaining.length > 0)
    throw new Failure(
      'conflict',
      `The project is not empty. Delete these first, or wait until they end: ${remaining.map(([what, count]) => `${what} (${count})`).join(', ')}.`,
    )
  await revokeAccessKeysOfProject(tx, row.id)
  await deleteSshKeysOfProject(tx, row.id)
  await deleteInstanceTemplatesOfProject(tx, row.id)
  if (!(await deleteProjectRow(tx, row.id))) throw notFound('project')
  await emitProject(tx, by, 'project.deleted', row)
  tx.signal('access')
}

const emitProject = (tx: Tx, by: Requester, type: EventType, row: ProjectRow): Promise<void> =>
  emit(tx, {
    ...by,
    type,
    resourceType: 'project',
    resourceId: row.id,
    projectId: row.id,
    organizationId: row.organization_id,
    data: projectView(row),
  })
