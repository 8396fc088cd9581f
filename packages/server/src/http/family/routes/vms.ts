import type { Vm } from '@slipway/contract'
import { Failure, requireFound } from '../../../domain/failure.ts'
import { findVmView } from '../../../store/compute/vm-view.ts'
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
import { vmShape } from '../shapes/vms.ts'
import { changeAddress, createWithAddress, readAddress } from './addresses.ts'
import { begin, type FamilyRoute, get, patch, post, remove, unlimitedGet } from './route.ts'

const path = '/projects/:project_id/compute/vms/instances'
const type = 'vm'

export const vmRoutes: FamilyRoute[] = [
  post(path, (call) => call.operation({ name: 'CREATE', type }, () => createVm(call))),
  get(path, async (call) => {
    const { ids, names, types, locations, states, limit, next_token } = call.query
    const query = { ids, names, types, locations, states, limit, page_token: next_token }
    const { items, next_page_token } = await call.ownApi('vmList', { query })
    return { items: items.map(vmShape), next_page_token, prev_page_token: '' }
  }),
  unlimitedGet(`${path}/:vm_id`, 'vmGet', async ({ services, params, projectId }) => {
    const { text } = requireFound('VM', await findVmView(services.database, projectId, params.vm_id ?? ''))
    return vmShape(JSON.parse(text) as Vm)
  }),
  patch(`${path}/:vm_id`, (call) =>
    call.operation({ name: nameOf(call), type, id: call.params.vm_id! }, () => changeVm(call)),
  ),
  remove(`${path}/:vm_id`, (call) =>
    call.operation({ name: 'DELETE', type, id: call.params.vm_id! }, () => begin(call.ownApi('vmDelete'))),
  ),
  post(`${path}/:vm_id/attach-disks`, (call) =>
    call.operation({ name: 'ATTACH', type, id: call.params.vm_id! }, () => {
      const body = { attach_disks: listOf(call.body.attach_disks).map(attachmentFields) }
      return begin(call.ownApi('vmAttachDisks', { body }))
    }),
  ),
  post(`${path}/:vm_id/detach-disks`, (call) =>
    call.operation({ name: 'DETACH', type, id: call.params.vm_id! }, () => {
      const body = withoutEmpty({ detach_disks: call.body.detach_disks })
      return begin(call.ownApi('vmDetachDisks', { body }))
    }),
  ),
]

const nameOf = ({ body: { action } }: FamilyCall) =>
  action === 'START' || action === 'STOP' || action === 'RESET' ? action : 'UPDATE'

function createVm(call: FamilyCall) {
  refuseUnsupported(call.body, { host_channel_adapters: noInfiniBand, nvlink_domain_id: noNvlink })
  return createWithAddress(call, vmFields(call), readAddress(call.body))
}

function vmFields(call: FamilyCall): Members {
  const { name, type, location, image, custom_image, ssh_public_key, startup_script, shutdown_script } =
    call.body
  const reservation = withoutEmpty((call.body.reservation_specification ?? {}) as Members)
  return withoutEmpty({
    ...{ name, type, custom_image, ssh_public_key, startup_script, shutdown_script },
    location: location || 'any',
    image: resolveImageAlias(call, image),
    disks: call.body.disks ? listOf(call.body.disks).map(attachmentFields) : undefined,
    subnet_id: call.bodyMember('network_interfaces', 0, 'subnet'),
    reservation_specification: reservation.id
      ? { id: reservation.id }
      : Object.keys(reservation).length > 0
        ? reservation
        : undefined,
  })
}

/** The operator can offer images under the names that clients of the compatible API use. */
export function resolveImageAlias({ services }: FamilyCall, image: unknown): unknown {
  const { familyImageAliases } = services.config.server
  return typeof image === 'string' && Object.hasOwn(familyImageAliases, image)
    ? familyImageAliases[image]
    : image
}

const attachmentFields = (disk: unknown) =>
  withoutEmpty({
    disk_id: memberOf(disk, 'disk_id'),
    attachment_type: memberOf(disk, 'attachment_type'),
    mode: memberOf(disk, 'mode'),
  })

function changeVm(call: FamilyCall) {
  const { action, type: newType, reservation_id } = call.body
  const change = (body: object) => begin(call.ownApi('vmUpdate', { body }))
  if (action !== 'UPDATE') return change(withoutEmpty({ action, reservation_id }))
  refuseUnsupported(call.body, { host_channel_adapters: noInfiniBand })
  if (newType) return change({ type: newType })
  const address = readAddress(call.body)
  if (address.type === '')
    throw new Failure(
      'invalid_argument',
      'UPDATE requires a type, or the public address of a network interface.',
    )
  return changeAddress(call, address)
}
