import type { EventType, InstanceTemplateCreate } from '@slipway/contract'
import { nameTaken, requireFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { type ProjectRequester, requireOrganizationQuota } from '../operations/admission.ts'
import type { Tx } from '../postgres/database.ts'
import {
  deleteInstanceTemplateRow,
  type InstanceTemplateRow,
  insertInstanceTemplate,
} from '../store/compute/instance-templates.ts'
import { emit } from '../store/events/events.ts'

/** The fields are checked against the catalogue only when a VM is created from the template. */
export async function createInstanceTemplate(
  tx: Tx,
  by: ProjectRequester,
  request: InstanceTemplateCreate,
): Promise<InstanceTemplateRow> {
  const { name, new_version, id: _id, version: _v, project_id: _p, created_at: _c, ...body } = request
  const row = await insertInstanceTemplate(tx, {
    id: uuid(),
    projectId: by.projectId,
    name,
    body: JSON.stringify(body),
    labels: body.labels ?? {},
    isNewVersion: new_version ?? false,
  })
  if (!row) throw nameTaken('instance template', name)
  await requireOrganizationQuota(tx, by, 'instance_templates')
  await emitTemplate(tx, by, 'instance_template.created', row)
  return row
}

/** VMs keep the id of the version that they were created from. */
export async function deleteInstanceTemplate(tx: Tx, by: ProjectRequester, id: string): Promise<void> {
  const row = requireFound('instance template', await deleteInstanceTemplateRow(tx, by.projectId, id))
  await emitTemplate(tx, by, 'instance_template.deleted', row)
}

/** The event does not contain the fields of the template, which may contain secrets. */
const emitTemplate = (
  tx: Tx,
  by: ProjectRequester,
  type: EventType,
  { id, name, version, labels }: InstanceTemplateRow,
): Promise<void> =>
  emit(tx, {
    ...by,
    type,
    resourceType: 'instance_template',
    resourceId: id,
    data: { name, version, labels },
  })
