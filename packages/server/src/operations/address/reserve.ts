import type { AddressCreate, Labels } from '@slipway/contract'
import { Failure, invalidField, nameTaken, notFound, requireFound } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { TryAgain, type Tx, violatedConstraint } from '../../postgres/database.ts'
import { relabelUsage } from '../../store/billing/usage.ts'
import { lockVm } from '../../store/compute/vms.ts'
import { holdAddresses } from '../../store/network/addresses.ts'
import {
  type AddressRow,
  adoptAddress,
  deleteAddressRow,
  insertAddress,
  lockAddress,
  updateAddress,
} from '../../store/network/public-addresses.ts'
import { type ProjectRequester, requireNoOperation, requireOrganizationQuota } from '../admission.ts'
import { requireLocation } from '../catalogue.ts'
import { pickPublicAddress } from '../vm/addresses.ts'
import { emitAddress } from './events.ts'
import { requireUnassigned } from './in-use.ts'

/** Reserves a free address of a location, or the dynamic address of a VM. */
export async function reserveAddress(
  tx: Tx,
  by: ProjectRequester,
  { name, location, vm_id, labels = {} }: AddressCreate,
): Promise<AddressRow> {
  if ((location === undefined) === (vm_id === undefined))
    throw invalidField('location', 'is required unless vm_id is given; send exactly one of the two')
  const row = await writeUniqueAddressName(name, () =>
    vm_id === undefined
      ? reserveFree(tx, by, location!, { name, labels })
      : adoptFromVm(tx, by, vm_id, { name, labels }),
  )
  await requireOrganizationQuota(tx, by, 'reserved_addresses')
  await emitAddress(tx, by, 'address.created', row)
  return row
}

interface Annotation {
  name: string
  labels: Labels
}

async function reserveFree(tx: Tx, by: ProjectRequester, where: string, annotation: Annotation) {
  const location = await requireLocation(tx, where)
  const address = await pickPublicAddress(tx, location)
  const row = await insertAddress(tx, {
    ...{ id: uuid(), projectId: by.projectId, location: location.name, address },
    ...annotation,
  })
  if (!row) throw new TryAgain('another transaction took the address')
  return row
}

async function adoptFromVm(tx: Tx, by: ProjectRequester, vmId: string, annotation: Annotation) {
  const vm = await lockVm(tx, { projectId: by.projectId, id: vmId })
  if (!vm) throw invalidField('vm_id', 'must be a VM of this project')
  await requireNoOperation(tx, vm.id, `The VM ${vm.name}`)
  if (vm.public_address === null)
    throw new Failure(
      'conflict',
      `The VM ${vm.name} has no public address. To reserve a free address, send location instead of vm_id.`,
    )
  const row = await adoptAddress(tx, { vmId, ...annotation })
  if (!row) throw new Failure('conflict', `The address of the VM ${vm.name} is already reserved.`)
  return row
}

export async function changeAddress(
  tx: Tx,
  by: ProjectRequester,
  id: string,
  change: Partial<Annotation>,
): Promise<AddressRow> {
  if (Object.keys(change).length === 0)
    throw new Failure('invalid_argument', 'The body is empty. Send at least one field to change.')
  const before = requireFound('address', await lockAddress(tx, by.projectId, id))
  const { name } = { ...before, ...change }
  const row = await writeUniqueAddressName(name, () => updateAddress(tx, id, change))
  await relabelUsage(tx, [id], row.name, row.labels)
  await emitAddress(tx, by, 'address.updated', row)
  return row
}

/** Releases the address. Another VM can get the address only when no firewall of the project can still allow it. */
export async function releaseAddress(tx: Tx, by: ProjectRequester, id: string): Promise<void> {
  const row = await lockAddress(tx, by.projectId, id)
  if (!row) throw notFound('address')
  await requireUnassigned(tx, row)
  await deleteAddressRow(tx, id)
  await holdAddresses(tx, [
    { project_id: row.project_id, public_address: row.address, is_address_static: false },
  ])
  await emitAddress(tx, by, 'address.deleted', row)
}

async function writeUniqueAddressName<T>(name: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw violatedConstraint(error) === 'public_addresses_name_key'
      ? nameTaken('reserved address', name)
      : error
  }
}
