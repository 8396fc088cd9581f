import type { VmCreate } from '@slipway/contract'
import { invalidField } from '../../domain/failure.ts'
import type { Queryable } from '../../postgres/database.ts'
import { findInstanceTemplate } from '../../store/compute/instance-templates.ts'

/** A request for a VM that has everything a VM needs. */
export type VmBody = VmCreate & Required<Pick<VmCreate, 'type' | 'location' | 'image'>>

/** Returns the request with the members of its template that it does not replace; throws the 400 for a missing one. */
export async function completeVmBody(db: Queryable, projectId: string, request: VmCreate): Promise<VmBody> {
  const body = { ...(await membersOfTemplate(db, projectId, request.instance_template_id)), ...request }
  const { type, location, image } = body
  if (type === undefined) throw invalidField('type', 'is required')
  if (location === undefined) throw invalidField('location', 'is required')
  if (image === undefined) throw invalidField('image', 'is required')
  return { ...body, type, location, image }
}

async function membersOfTemplate(db: Queryable, projectId: string, id: string | undefined) {
  if (id === undefined) return {}
  const template = await findInstanceTemplate(db, projectId, id)
  if (!template) throw invalidField('instance_template_id', 'must be an instance template of this project')
  const { placement_policy: _, ...members } = template.body
  return members
}
