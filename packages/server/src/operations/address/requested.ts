import { invalidField } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { retryAlone } from '../../postgres/transaction.ts'
import { type AddressRow, lockAddress } from '../../store/network/public-addresses.ts'
import type { VmBody } from '../vm/template.ts'
import { requireUnassigned } from './in-use.ts'

/**
 * Locks the reserved address that a VM request names. Returns undefined if it names none; throws a 400 or 409
 * if the address cannot be used.
 */
export async function lockRequestedAddress(
  tx: Tx,
  projectId: string,
  { public_address_id, public_ip }: VmBody,
  location: string,
): Promise<AddressRow | undefined> {
  if (public_address_id === undefined) return undefined
  if (public_ip !== undefined) throw invalidField('public_ip', 'must be absent if public_address_id is given')
  if (!tx.mayWait) throw retryAlone('a reserved address is locked')
  const row = await lockAddress(tx, projectId, public_address_id)
  if (!row) throw invalidField('public_address_id', 'must be a reserved address of this project')
  if (row.location !== location)
    throw invalidField('public_address_id', `is in ${row.location}, not in ${location}`)
  await requireUnassigned(tx, row)
  return row
}
