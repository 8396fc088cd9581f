import type { VmCreate } from '@slipway/contract'
import { invalidField } from '../../domain/failure.ts'
import type { Queryable } from '../../postgres/database.ts'
import { findInstanceTemplate } from '../../store/compute/instance-templates.ts'

/** A complete VM request: it has all required fields, including an image or a custom image. */
export type VmBody = VmCreate & Required<Pick<VmCreate, 'type' | 'location'>>

/**
 * Adds the fields that the request does not set but its template does. Throws a 400 if a required field is still
 * missing.
 */
export async function completeVmBody(db: Queryable, projectId: string, request: VmCreate): Promise<VmBody> {
  if (request.image !== undefined && request.custom_image !== undefined)
    throw invalidField('custom_image', 'cannot be combined with image')
  const template = await fieldsOfTemplate(db, projectId, request.instance_template_id)
  const body = { ...withoutReplacedImage(template, request), ...request }
  const { type, location } = body
  if (type === undefined) throw invalidField('type', 'is required')
  if (location === undefined) throw invalidField('location', 'is required')
  if (body.image === undefined && body.custom_image === undefined)
    throw invalidField('image', 'is required unless custom_image is given')
  return { ...body, type, location }
}

/** An image of the request replaces a custom image of the template, and vice versa. */
function withoutReplacedImage(template: Partial<VmCreate>, request: VmCreate): Partial<VmCreate> {
  const { image, custom_image, ...others } = template
  return request.image === undefined && request.custom_image === undefined ? template : others
}

async function fieldsOfTemplate(
  db: Queryable,
  projectId: string,
  id: string | undefined,
): Promise<Partial<VmCreate>> {
  if (id === undefined) return {}
  const template = await findInstanceTemplate(db, projectId, id)
  if (!template) throw invalidField('instance_template_id', 'must be an instance template of this project')
  const { placement_policy: _, ...fields } = template.body
  return fields
}
