import { randomBytes, randomInt } from 'node:crypto'
import { type VmType, vmTypes } from '@slipway/contract'
import { macFor, numberToAddress, parseCidr, usableRange } from '../domain/addresses.ts'
import { Failure } from '../domain/failure.ts'
import { chooseGpus } from '../domain/placement.ts'
import { type AddressPool, findFreeAddress } from '../store/addresses.ts'
import { TryAgain, type Tx } from '../store/database.ts'
import { claimGpus, listAvailability, lockHostFor } from '../store/placement.ts'

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
 * A free address: random tries first, so that creations do not queue up behind one counter; an exact search when the
 * pool is nearly full. The schema's unique index has the last word, and a collision tries the transaction again.
 */
async function pickAddress(
  tx: Tx,
  pool: AddressPool,
  range: { first: number; last: number },
): Promise<string | null> {
  const candidates = Array.from({ length: tries }, () =>
    numberToAddress(randomInt(range.first, range.last + 1)),
  )
  return findFreeAddress(tx, pool, candidates, numberToAddress(range.first), range.last - range.first + 1)
}

export async function pickPrivateAddress(tx: Tx, networkId: string, subnetCidr: string): Promise<string> {
  const address = await pickAddress(tx, { networkId }, usableRange(subnetCidr))
  if (!address)
    throw new Failure(
      'out_of_stock',
      `The subnet ${subnetCidr} is out of stock of addresses: use another subnet.`,
      {
        extra: { available_locations: [] },
      },
    )
  return address
}

export async function pickPublicAddress(tx: Tx, location: string, poolCidr: string | null): Promise<string> {
  const pool = poolCidr === null ? null : parseCidr(poolCidr)
  // The first and the last address of a pool are its network and broadcast addresses.
  const address =
    pool &&
    (await pickAddress(
      tx,
      { networkId: null },
      { first: pool.base + 1, last: pool.base + 2 ** (32 - pool.prefix) - 2 },
    ))
  if (!address)
    throw new Failure(
      'out_of_stock',
      `${location} is out of stock of public addresses: ask for public_ip "none".`,
      {
        extra: { available_locations: [] },
      },
    )
  return address
}

export const newMacAddress = (): string => macFor(randomBytes(6))

/** Unique among all VMs; which of them collided says what to do. */
export function onVmCollision(constraint: string | undefined, name: string): Error | undefined {
  switch (constraint) {
    case 'vms_name':
      return new Failure('already_exists', `There is already a VM called ${name}: choose another name.`)
    case 'vms_private_address':
    case 'vms_public_address':
    case 'vms_mac_address_key':
      return new TryAgain(constraint)
    default:
      return undefined
  }
}

export const typeNames = vmTypes.map(({ name }) => name)
