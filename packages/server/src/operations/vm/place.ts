import { randomBytes, randomInt } from 'node:crypto'
import { parseCidr, type VmType } from '@slipway/contract'
import { macFor, numberToAddress, usableRange } from '../../domain/addresses.ts'
import { Failure } from '../../domain/failure.ts'
import { chooseGpus } from '../../domain/placement.ts'
import { claimGpus, listAvailability, lockHostFor } from '../../store/compute/placement.ts'
import { TryAgain, type Tx } from '../../store/database.ts'
import { type AddressRange, findFreeAddresses } from '../../store/network/addresses.ts'

/** Takes GPUs for the VM on the best host, or says where it would fit. */
export async function placeVm(
  tx: Tx,
  vmId: string,
  type: VmType,
  location: string,
  allowedHosts: string[] | null,
): Promise<{ hostId: string }> {
  const { family, gpuCount } = type
  const host = await lockHostFor(tx, { location, family, gpuCount, allowedHosts })
  const gpus = host && chooseGpus(host.freeGpus, gpuCount)
  if (!host || !gpus) throw await outOfStock(tx, type, location)
  await claimGpus(
    tx,
    vmId,
    gpus.map(({ id }) => id),
  )
  return { hostId: host.id }
}

async function outOfStock(tx: Tx, type: VmType, location: string): Promise<Failure> {
  const rows = await listAvailability(tx, [type], null)
  const elsewhere = rows
    .filter((row) => row.available && row.location !== location)
    .map((row) => row.location)
  const hint = elsewhere.length > 0 ? `It would fit in ${elsewhere.join(', ')}.` : 'Try again later.'
  return new Failure('out_of_stock', `${type.name} is out of stock in ${location}. ${hint}`, {
    extra: { available_locations: elsewhere },
  })
}

const tries = 16

/**
 * Free addresses: random tries first, so that creations do not queue up behind one counter; an exact search when a
 * pool is nearly full. The schema's unique indexes have the last word, and a collision tries the transaction again.
 */
export async function pickAddresses(
  tx: Tx,
  subnet: { network_id: string; cidr: string },
  location: { name: string; public_ipv4: string | null },
  wantsPublic: boolean,
): Promise<{ privateAddress: string; publicAddress: string | null }> {
  const pool = wantsPublic ? publicRange(location) : null
  const free = await findFreeAddresses(
    tx,
    subnet.network_id,
    rangeOf(usableRange(subnet.cidr)),
    pool && rangeOf(pool),
  )
  if (!free.privateAddress)
    throw outOfAddresses(`The subnet ${subnet.cidr} is out of stock of addresses: use another subnet.`)
  if (wantsPublic && !free.publicAddress)
    throw outOfAddresses(`${location.name} is out of stock of public addresses: ask for public_ip "none".`)
  return { privateAddress: free.privateAddress, publicAddress: free.publicAddress }
}

/** The first and the last address of a pool are its network and broadcast addresses. */
function publicRange({ public_ipv4 }: { public_ipv4: string | null }) {
  if (public_ipv4 === null) return null
  const { base, prefix } = parseCidr(public_ipv4)!
  return { first: base + 1, last: base + 2 ** (32 - prefix) - 2 }
}

function rangeOf({ first, last }: { first: number; last: number }): AddressRange {
  const candidates = Array.from({ length: tries }, () => numberToAddress(randomInt(first, last + 1)))
  return { candidates, first: numberToAddress(first), count: last - first + 1 }
}

const outOfAddresses = (message: string) =>
  new Failure('out_of_stock', message, { extra: { available_locations: [] } })

export const newMacAddress = (): string => macFor(randomBytes(6))

export const vmNameTaken = (name: string) =>
  new Failure('already_exists', `There is already a VM called ${name}: choose another name.`)

/** Unique among all VMs; which of them collided says what to do. */
export function onVmCollision(constraint: string | undefined, name: string): Error | undefined {
  switch (constraint) {
    case 'vms_name':
      return vmNameTaken(name)
    case 'vms_private_address':
    case 'vms_public_address':
    case 'vms_mac_address_key':
      return new TryAgain(constraint)
    default:
      return undefined
  }
}
