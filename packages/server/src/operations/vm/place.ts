import { randomBytes, randomInt } from 'node:crypto'
import { parseCidr, type VmType } from '@slipway/contract'
import { macFor, numberToAddress, usableRange } from '../../domain/addresses.ts'
import { Failure } from '../../domain/failure.ts'
import { type OpenHost, takeGpus } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import { gathered, type OwnResult, perTransaction } from '../../postgres/gathered.ts'
import { retryAlone } from '../../postgres/transaction.ts'
import {
  awaitHost,
  doesAnyHostFit,
  hasNodePreference,
  lockHostsFor,
  type PlacementRequest,
} from '../../store/compute/host-locks.ts'
import { claimGpus, listAvailability, listOffering } from '../../store/compute/placement.ts'
import { type AddressRange, findFreeAddresses } from '../../store/network/addresses.ts'

export interface Placement {
  hostId: string
  gpuIds: string[]
}

const mostRounds = 8

/**
 * Finds GPUs for a VM, on hosts that it locks; undefined where nothing fits. If all that fits is locked by other
 * transactions, the request waits for them, alone, and looks again until a fresh snapshot shows no fit: so the last GPU goes
 * to exactly one of two requests.
 */
export const placeVm = gathered(placeVms)

/** The hosts that a transaction has locked, with the GPUs that none of its VMs was given. */
const lockedHosts = perTransaction((): OpenHost[] => [])

async function placeVms(tx: Tx, requests: PlacementRequest[]): Promise<OwnResult<Placement | undefined>[]> {
  const hosts = lockedHosts(tx)
  const placed: (Placement | undefined)[] = requests.map(() => undefined)
  const held = () => hosts.map(({ id }) => id)
  const missing = () => requests.filter((_, index) => !placed[index])
  const take = async (isInOneNode: boolean) => {
    for (let round = 0; round < mostRounds; round++) {
      for (const [index, request] of requests.entries())
        if (!isInOneNode || hasNodePreference(request))
          placed[index] ??= takeGpus(hosts, request, isInOneNode)
      const wanted = missing().filter((request) => !isInOneNode || hasNodePreference(request))
      if (wanted.length === 0) return
      const more = await lockHostsFor(tx, wanted, isInOneNode, held())
      if (more.length === 0) return
      hosts.push(...more)
    }
  }
  for (;;) {
    await take(true)
    await take(false)
    const fits = await Promise.all(
      requests.map((request, index) => !placed[index] && doesAnyHostFit(tx, request, held())),
    )
    if (!tx.mayWait || !fits[0])
      return placed.map((each, index) => (fits[index] ? retryAlone('hosts are locked') : each))
    await awaitHost(tx, requests[0]!, held())
  }
}

/** Takes GPUs for a VM that is there already. */
export async function placeExistingVm(
  tx: Tx,
  vmId: string,
  type: VmType,
  location: string,
  allowedHosts: string[] | null,
): Promise<{ hostId: string }> {
  const { family, gpuCount } = type
  const placed = await placeVm(tx, { location, family, gpuCount, allowedHosts })
  if (!placed) throw await outOfStock(tx, type, location)
  const { hostId, gpuIds } = placed
  await claimGpus(tx, { vmId, gpuIds })
  return { hostId }
}

export async function outOfStock(tx: Tx, type: VmType, location: string): Promise<Failure> {
  const [rows, offering] = await Promise.all([listAvailability(tx, [type], null), listOffering(tx, type)])
  const elsewhere = rows
    .filter((row) => row.available && row.location !== location)
    .map((row) => row.location)
  const where = offering.includes(location) ? location : `${location}, which has no host with ${gpusOf(type)}`
  const hint = elsewhere.length > 0 ? `It would fit in ${elsewhere.join(', ')}.` : retryHint(offering)
  return new Failure('out_of_stock', `${type.name} is out of stock in ${where}. ${hint}`, {
    extra: { available_locations: elsewhere },
  })
}

export async function outOfStockEverywhere(tx: Tx, type: VmType): Promise<Failure> {
  const hint = retryHint(await listOffering(tx, type))
  return new Failure(
    'out_of_stock',
    `${type.name} is out of stock in every location that has the image and a subnet of the project. ${hint}`,
    { extra: { available_locations: [] } },
  )
}

const gpusOf = ({ gpuCount, gpuModel }: VmType) =>
  gpuCount === 1 ? `an ${gpuModel} GPU` : `${gpuCount} ${gpuModel} GPUs`

/** Waiting helps only where a host could run the VM if other VMs left it. */
const retryHint = (offering: string[]) =>
  offering.length > 0
    ? `Try again later in ${offering.join(', ')}.`
    : 'No location has such a host in service: choose another type.'

/** The hosts of the subnet's location carry a range for one network at a time. */
export const rangeTaken = ({ cidr, location }: { cidr: string; location: string }, fitting: string[]) =>
  new Failure(
    'out_of_stock',
    `The subnet's range ${cidr} is out of stock in ${location}: hosts there carry a range for one network at a time, and VMs of another project have one that overlaps with it. Use a subnet of a network with another range${fitting.length > 0 ? `, or ${fitting.join(', ')}` : ''}.`,
    { extra: { available_locations: fitting } },
  )

const tries = 16

/** Where the addresses of one VM come from. */
export interface AddressRequest {
  subnet: { network_id: string; cidr: string }
  location: { name: string; public_ipv4: string | null }
  hasPublicAddress: boolean
}

export interface Addresses {
  privateAddress: string
  publicAddress: string | null
}

/**
 * Finds free addresses for a VM: random tries, so that creations do not queue up behind one counter. If a pool is nearly
 * full it takes an exact search, which a request makes alone. The schema's unique indexes decide.
 */
export const pickAddresses = gathered(
  async (tx: Tx, requests: AddressRequest[]): Promise<OwnResult<Addresses>[]> => {
    const ranges = requests.map(({ subnet, location, hasPublicAddress }) => {
      const pool = hasPublicAddress ? publicRange(location) : null
      return {
        networkId: subnet.network_id,
        inside: rangeOf(usableRange(subnet.cidr)),
        outside: pool && rangeOf(pool),
      }
    })
    const found = await findFreeAddresses(tx, ranges, tx.mayWait)
    return requests.map((request, index) => {
      const { privateAddress, publicAddress } = found[index]!
      const lacksPublic = request.hasPublicAddress && !publicAddress
      if (privateAddress && !lacksPublic) return { privateAddress, publicAddress }
      if (!tx.mayWait) return retryAlone('an exact search for addresses is needed')
      return outOfAddresses(
        privateAddress
          ? `${request.location.name} is out of stock of public addresses: ask for public_ip "none".`
          : `The subnet ${request.subnet.cidr} is out of stock of addresses: use another subnet.`,
      )
    })
  },
)

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
