import { type InstanceTemplate, maxGroupMembers } from '@slipway/contract'
import { Failure } from '../../../domain/failure.ts'
import {
  listOf,
  type Members,
  memberOf,
  noInfiniBand,
  noNvlink,
  refuseUnsupported,
  withoutEmpty,
} from '../members.ts'
import type { FamilyCall } from '../request.ts'
import { groupShape, isStatic, templateFields, templateShape } from '../shapes/instances.ts'
import { createWithAddress } from './addresses.ts'
import { type FamilyRoute, get, patch, post, remove } from './route.ts'
import { resolveImageAlias } from './vms.ts'

const templates = '/projects/:project_id/compute/instance-templates'
const groups = '/projects/:project_id/compute/instance-groups'

const templateRoutes: FamilyRoute[] = [
  post(templates, async (call) =>
    templateShape(await call.ownApi('instanceTemplateCreate', { body: templateFields(call.body) })),
  ),
  get(templates, async (call) => ({ items: (await call.all('instanceTemplateList')).map(templateShape) })),
  get(`${templates}/:instance_template_id`, async (call) =>
    templateShape(await call.ownApi('instanceTemplateGet')),
  ),
  remove(`${templates}/:instance_template_id`, (call) => call.ownApi('instanceTemplateDelete')),
]

const groupRoutes: FamilyRoute[] = [
  post(groups, async (call) => {
    const { name, desired_count, template_id } = call.body
    const template = await templateOf(call, template_id)
    if (isStatic(template))
      throw new Failure('invalid_argument', 'The members of an instance group cannot have static addresses.')
    const vm = withoutEmpty({ image: resolveImageAlias(call, template.image) })
    const body = withoutEmpty({ name, desired_count, template_id, vm })
    const { operation } = await call.ownApi('instanceGroupCreate', { body })
    return readGroup(call, operation.metadata.id)
  }),
  get(groups, async (call) => ({ items: (await call.all('instanceGroupList')).map(groupShape) })),
  get(`${groups}/:instance_group_id`, (call) => readGroup(call, call.params.instance_group_id!)),
  patch(`${groups}/:instance_group_id`, changeGroup),
  remove(`${groups}/:instance_group_id`, async (call) => {
    await call.ownApi('instanceGroupDelete')
    return {}
  }),
]

async function readGroup(call: FamilyCall, id: string) {
  return groupShape(await call.ownApi('instanceGroupGet', { params: { instance_group_id: id } }))
}

/** Clients send all fields, with an empty object for a count of 0. Each difference is a separate change. */
async function changeGroup(call: FamilyCall) {
  const id = call.params.instance_group_id!
  const now = await readGroup(call, id)
  const { name, template_id, desired_count } = call.body
  if (name && name !== now.name)
    throw new Failure('invalid_argument', 'The name of an instance group cannot be changed.')
  if (template_id && template_id !== now.template_id)
    await call.ownApi('instanceGroupUpdate', { body: { template_id }, part: 'template' })
  const count = desired_count === undefined ? undefined : (memberOf(desired_count, 'value') ?? 0)
  if (count !== undefined && count !== now.desired_count)
    await call.ownApi('instanceGroupUpdate', { body: { desired_count: count }, part: 'count' })
  return readGroup(call, id)
}

const templateOf = (call: FamilyCall, id: unknown): Promise<InstanceTemplate> =>
  call.ownApi('instanceTemplateGet', { params: { instance_template_id: String(id) } })

const bulkRoute = post('/projects/:project_id/compute/vms/bulk-instances', (call) =>
  call.operation({ name: 'CREATE', type: 'vm' }, () => createBulk(call)),
)

/** Creates all VMs or none. The client polls one operation, whose parts are the operations of the VMs. */
async function createBulk(call: FamilyCall) {
  const { name_prefix, count } = call.body
  if (typeof name_prefix !== 'string' || name_prefix === '')
    throw new Failure('invalid_argument', 'name_prefix must be a non-empty string.')
  const size = Number(count)
  if (!Number.isInteger(count) || size < 1 || size > maxGroupMembers)
    throw new Failure('invalid_argument', `count must be a whole number from 1 to ${maxGroupMembers}.`)
  const { vm, type } = await bulkVm(call)
  const vmIds: string[] = []
  const parts: string[] = []
  try {
    for (let number = 1; number <= size; number++) {
      const one = { ...vm, name: `${name_prefix}-${number}` }
      const operation = await createWithAddress(call, one, { type }, `vm${number}`)
      parts.push(operation.operation_id)
      vmIds.push(operation.metadata.id)
    }
  } catch (error) {
    // Do not undo the VMs of an identical earlier request.
    for (const [index, vm_id] of call.isRepeated ? [] : vmIds.entries())
      await call.ownApi('vmDelete', { params: { vm_id }, part: `undo${index}` }).catch(() => {})
    throw error
  }
  return call.keep({ name: 'CREATE', type: 'vm', id: vmIds[0]! }, 'IN_PROGRESS', null, parts)
}

/**
 * Returns the fields that all VMs share, from a template of the project or from the request, and the type of the VMs'
 * addresses.
 */
async function bulkVm(call: FamilyCall): Promise<{ vm: Members; type: string }> {
  const { body } = call
  refuseUnsupported(body, {
    nvlink_domain_id: noNvlink,
    instance_group_id: 'change the desired_count of the group instead.',
  })
  const [target, ...more] = listOf(body.locations) as Members[]
  if (more.length > 0) throw new Failure('invalid_argument', 'locations must have at most one location.')
  refuseUnsupported(target ?? {}, { ib_partition_id: noInfiniBand, transport_partition_id: noInfiniBand })
  const targetFields = withoutEmpty({
    location: memberOf(target, 'location'),
    subnet_id: memberOf(target, 'subnet_id'),
  })
  if (body.instance_template_id) {
    const template = await templateOf(call, body.instance_template_id)
    const image = withoutEmpty({ image: resolveImageAlias(call, template.image) })
    const { id: instance_template_id, location = 'any' } = template
    const vm = { instance_template_id, location, ...image, ...targetFields }
    return { vm, type: isStatic(template) ? 'static' : '' }
  }
  const { labels, placement_policy: _, ...given } = templateFields((body.instance_template ?? {}) as Members)
  const vm = { location: 'any', ...given, image: resolveImageAlias(call, given.image), ...targetFields }
  return { vm: withoutEmpty(vm), type: labels ? 'static' : '' }
}

export const instanceRoutes = [...templateRoutes, ...groupRoutes, bulkRoute]
