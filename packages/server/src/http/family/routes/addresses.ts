import { Failure } from '../../../domain/failure.ts'
import { type Members, memberOf } from '../members.ts'
import type { FamilyCall } from '../request.ts'
import type { FamilyOperation } from '../shapes/operations.ts'
import { vmShape } from '../shapes/vms.ts'
import { begin, publicAddressOf } from './route.ts'

/** The public address that a request specifies for its VM. */
interface RequestedAddress {
  /** `dynamic`, `static`, `none`, or empty. */
  type: string
  /** The id of a reserved address, or empty. */
  id: string
}

export function readAddress(body: Members): RequestedAddress {
  const address = memberOf(body, 'network_interfaces', 0, 'ips', 0, 'public_ipv4')
  const { type, id } = { type: memberOf(address, 'type') ?? '', id: memberOf(address, 'id') ?? '' }
  if (typeof type !== 'string' || !['', 'dynamic', 'static', 'none'].includes(type) || typeof id !== 'string')
    throw new Failure(
      'invalid_argument',
      'The type of public_ipv4 must be dynamic, static or none, and its id a string.',
    )
  return { type, id }
}

/**
 * Creates a VM. A static address is a reserved address with the VM's name. It is reserved first, unless the
 * project already has a reserved address of this name, and it stays reserved when the VM is deleted.
 */
export async function createWithAddress(
  call: FamilyCall,
  vm: Members,
  { type }: Pick<RequestedAddress, 'type'>,
  part = '',
): Promise<FamilyOperation> {
  const create = (more: object) => begin(call.ownApi('vmCreate', { body: { ...vm, ...more }, part }))
  const { name } = vm
  // Slipway's own API refuses a request without a name, so pass it on.
  if (type !== 'static' || typeof name !== 'string')
    return create(type === 'none' ? { public_ip: 'none' } : {})
  const reserved = (await call.all('addressList')).find((address) => address.name === name)
  if (reserved) return create({ public_address_id: reserved.id, location: reserved.location })
  if (vm.location === 'any')
    throw new Failure('invalid_argument', 'A VM with a static address needs a location.')
  const { id } = await call.ownApi('addressCreate', {
    body: { name, location: vm.location },
    part: `${part}address`,
  })
  try {
    return await create({ public_address_id: id })
  } catch (error) {
    // The VM was refused, so release the address that was reserved for it.
    const params = { address_id: id }
    await call.ownApi('addressDelete', { params, part: `${part}undo` }).catch(() => {})
    throw error
  }
}

/** Makes a VM's address static or dynamic, or assigns another reserved address to the VM. */
export async function changeAddress(
  call: FamilyCall,
  { type, id }: RequestedAddress,
): Promise<FamilyOperation> {
  await call.enter('vmUpdate')
  const vm = await call.ownApi('vmGet')
  const now = publicAddressOf(vm)
  const subject = { name: 'UPDATE', type: 'vm', id: vm.id } as const
  const unchanged = async () => call.keep(subject, 'SUCCEEDED', vmShape(await call.ownApi('vmGet')))
  if (type === (now?.type || 'none') && (type !== 'static' || id === '' || id === now?.id)) return unchanged()
  if (type === 'none' || !now?.type)
    throw new Failure(
      'invalid_argument',
      'A public address cannot be added to or removed from an existing VM. Create the VM again with the right address type.',
    )
  if (type === 'dynamic') return begin(call.ownApi('addressUnassign', { params: { address_id: now.id } }))
  if (id !== '' && id !== now.id)
    return begin(call.ownApi('addressAssign', { params: { address_id: id }, body: { vm_id: vm.id } }))
  await call.ownApi('addressCreate', { body: { name: vm.name, vm_id: vm.id } })
  return unchanged()
}
