import type { LabelSelector, Labels } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { fitsLabels, type LabelParams, labelParams } from '../../postgres/labels.ts'
import { isBefore, statement } from '../../postgres/statement.ts'

/** A reserved address. */
export interface AddressRow {
  id: string
  project_id: string
  name: string
  address: string
  location: string
  vm_id: string | null
  /** The VM that gets the address from an unfinished operation. */
  next_vm_id: string | null
  labels: Labels
  created_at: Date
}

export interface NewAddress {
  id: string
  projectId: string
  location: string
  address: string
}

const columns =
  'id, project_id, name, host(address) AS address, location, vm_id, next_vm_id, labels, created_at'
const selectReserved = `SELECT ${columns} FROM public_addresses WHERE name IS NOT NULL`

const list = statement<
  AddressRow,
  { projectId: string; beforeId: string | null; limit: number } & LabelParams
>(
  'address_list',
  `${selectReserved} AND project_id = :projectId AND ${isBefore('id')} AND ${fitsLabels('labels')}
   ORDER BY id DESC LIMIT :limit`,
)

export const findAddress = statement<AddressRow, { projectId: string; id: string }>(
  'address_by_id',
  `${selectReserved} AND id = :id AND project_id = :projectId`,
).oneBy('projectId', 'id')

export const lockAddress = statement<AddressRow, { projectId: string; id: string }, Tx>(
  'address_lock',
  `${selectReserved} AND id = :id AND project_id = :projectId FOR UPDATE`,
).oneBy('projectId', 'id')

// Violates `public_addresses_name_key` if the name is taken. Writes nothing if another transaction took the address.
const insert = statement<AddressRow, NewAddress & { name: string; labels: Labels }, Tx>(
  'address_insert',
  `INSERT INTO public_addresses (address, id, project_id, location, name, labels, created_at)
   VALUES (:address::inet, :id, :projectId, :location, :name, :labels, slipway_now())
   ON CONFLICT (address) DO NOTHING RETURNING ${columns}`,
)

// Violates `public_addresses_name_key` if the name is taken. Writes nothing if the VM's address is already reserved.
const adopt = statement<AddressRow, { vmId: string; name: string; labels: Labels }, Tx>(
  'address_adopt',
  `WITH vm AS (
     UPDATE vms SET is_address_static = true, updated_at = slipway_now()
     WHERE id = :vmId AND public_address IS NOT NULL AND NOT is_address_static RETURNING public_address)
   UPDATE public_addresses a SET name = :name, labels = :labels, created_at = slipway_now()
   FROM vm WHERE a.address = vm.public_address
   RETURNING ${columns.replace('host(address)', 'host(a.address)')}`,
)

// Null leaves a column unchanged.
const update = statement<AddressRow, { id: string; name: string | null; labels: Labels | null }>(
  'address_update',
  `UPDATE public_addresses SET name = coalesce(:name, name), labels = coalesce(:labels, labels)
   WHERE id = :id AND name IS NOT NULL RETURNING ${columns}`,
)

export const deleteAddressRow = statement<never, { id: string }, Tx>(
  'address_delete',
  'DELETE FROM public_addresses WHERE id = :id AND name IS NOT NULL AND vm_id IS NULL',
).runBy('id')

/** Finds the address that the VM gets from an unfinished operation. */
export const findPromisedAddress = statement<
  { id: string; address: string; is_reserved: boolean; vm_id: string | null },
  { vmId: string }
>(
  'address_promised',
  `SELECT id, host(address) AS address, name IS NOT NULL AS is_reserved, vm_id
   FROM public_addresses WHERE next_vm_id = :vmId`,
).oneBy('vmId')

/** Promises a reserved address to a VM. */
export const promiseAddress = statement<never, { id: string; vmId: string }, Tx>(
  'address_promise',
  'UPDATE public_addresses SET next_vm_id = :vmId WHERE id = :id AND name IS NOT NULL',
).runBy('id', 'vmId')

// Writes nothing if another transaction took the address.
const promiseNew = statement<{ id: string }, NewAddress & { vmId: string }, Tx>(
  'address_promise_new',
  `INSERT INTO public_addresses (address, id, project_id, location, next_vm_id)
   VALUES (:address::inet, :id, :projectId, :location, :vmId) ON CONFLICT (address) DO NOTHING RETURNING id`,
)

const withdrawNew = statement<never, { vmId: string }>(
  'address_promise_withdraw_new',
  'DELETE FROM public_addresses WHERE next_vm_id = :vmId AND name IS NULL',
)
const withdrawReserved = statement<never, { vmId: string }>(
  'address_promise_withdraw',
  'UPDATE public_addresses SET next_vm_id = NULL WHERE next_vm_id = :vmId',
)

// The trigger `keep_public_address` moves the rows of public_addresses; the statement fails if the VM was
// promised another address.
const give = statement<never, GivenAddress>(
  'vm_set_address',
  `UPDATE vms SET public_address = :address::inet, public_address_id = :addressId, is_address_static = :isStatic,
          ssh_destination = :sshDestination, updated_at = slipway_now()
   WHERE id = :vmId`,
)

export interface GivenAddress {
  vmId: string
  address: string
  addressId: string
  isStatic: boolean
  sshDestination: string
}

export const listAddresses = (
  db: Queryable,
  filter: { projectId: string; labels: LabelSelector | null },
  beforeId: string | null,
  limit: number,
) => list.all(db, { projectId: filter.projectId, ...labelParams(filter.labels), beforeId, limit })

export const insertAddress = insert.one
export const adoptAddress = adopt.one
export const updateAddress = async (tx: Tx, id: string, change: { name?: string; labels?: Labels }) =>
  (await update.one(tx, { id, name: change.name ?? null, labels: change.labels ?? null }))!
/** Returns false if another transaction took the address. */
export const promiseNewAddress = async (tx: Tx, address: NewAddress & { vmId: string }): Promise<boolean> =>
  (await promiseNew.one(tx, address)) !== undefined
export const giveAddress = (tx: Tx, given: GivenAddress) => give.run(tx, given)

/**
 * Withdraws the address that was promised to the VM. A dynamic address becomes free again, and a reserved one
 * stays reserved.
 */
export async function withdrawPromise(tx: Tx, vmId: string): Promise<void> {
  await withdrawNew.run(tx, { vmId })
  await withdrawReserved.run(tx, { vmId })
}
