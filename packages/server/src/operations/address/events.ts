import type { EventType } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { emit, type Requester } from '../../store/events/events.ts'
import { type AddressRow, findAddress } from '../../store/network/public-addresses.ts'

type By = Pick<Requester, 'actor' | 'requestId' | 'projectId'>

export const emitAddress = (
  tx: Tx,
  by: By,
  type: EventType,
  { id, name, address, location, labels }: AddressRow,
  more: { vm_id?: string } = {},
): Promise<void> =>
  emit(tx, {
    ...by,
    type,
    resourceType: 'address',
    resourceId: id,
    data: { name, address, location, labels, ...more },
  })

/** Called when a VM loses its address. If the address is reserved, emits an event, because it can be assigned again. */
export async function emitUnassigned(
  tx: Tx,
  { id, project_id, public_address_id, is_address_static }: VmRow,
  { actor, requestId }: Pick<Requester, 'actor' | 'requestId'>,
): Promise<void> {
  if (!is_address_static || public_address_id === null) return
  const address = await findAddress(tx, project_id, public_address_id)
  const by = { actor, requestId, projectId: project_id }
  if (address) await emitAddress(tx, by, 'address.unassigned', address, { vm_id: id })
}
