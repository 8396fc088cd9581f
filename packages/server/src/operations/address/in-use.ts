import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import type { AddressRow } from '../../store/network/public-addresses.ts'
import { blockedBy } from '../admission.ts'

/** Throws a 409 if a VM has the address, or if an operation is assigning it to a VM. */
export async function requireUnassigned(tx: Tx, address: AddressRow): Promise<void> {
  await requireNotPromised(tx, address)
  if (address.vm_id !== null)
    throw new Failure('conflict', `A VM has the address ${address.name}. Unassign the address first.`)
}

/** Throws a 409 that names the operation if it is assigning the address to a VM other than `vmId`. */
export async function requireNotPromised(
  tx: Tx,
  { name, next_vm_id }: AddressRow,
  vmId: string | null = null,
): Promise<void> {
  if (next_vm_id !== null && next_vm_id !== vmId)
    throw await blockedBy(
      tx,
      next_vm_id,
      `The address ${name} is being assigned. Wait until the assignment has finished.`,
    )
}
