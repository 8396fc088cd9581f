import { addressCount, blockContains, type Cidr, parseCidr } from '@slipway/contract'

const privateBlocks = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']

/** The first address is the network address, the second the gateway; three more are reserved for future services. */
const reservedAtStart = 5
const reservedAtEnd = 1

function cidrOf(text: string): Cidr {
  const cidr = parseCidr(text)
  if (!cidr) throw new RangeError(`not an IPv4 block: ${text}`)
  return cidr
}

/** The range of each project's default network. */
export const firstNetworkCidr = '172.27.0.0/16'

/** Returns false for text that is not a block. */
export function isPrivateCidr(text: string): boolean {
  const cidr = parseCidr(text)
  return cidr !== null && privateBlocks.some((block) => blockContains(cidrOf(block), cidr))
}

export function cidrsOverlap(a: string, b: string): boolean {
  const [x, y] = [cidrOf(a), cidrOf(b)]
  return blockContains(x, y) || blockContains(y, x)
}

/**
 * Returns whether the block contains the other block or address. Throws for text that is neither, so that an invalid
 * stored rule is noticed.
 */
export function cidrContainsOrThrow(outer: string, innerCidrOrAddress: string): boolean {
  return blockContains(cidrOf(outer), cidrOf(innerCidrOrAddress))
}

export function numberToAddress(n: number): string {
  if (!Number.isInteger(n) || n < 0 || n >= 2 ** 32) throw new RangeError(`not an IPv4 address: ${n}`)
  return [24, 16, 8, 0].map((shift) => Math.floor(n / 2 ** shift) % 256).join('.')
}

/** Returns the addresses of a subnet that VMs can have. Throws for blocks smaller than /29, which have none. */
export function usableRange(cidr: string): { first: number; last: number } {
  const { base, prefix } = cidrOf(cidr)
  if (prefix > 29) throw new RangeError(`too small to hold a VM: ${cidr}`)
  return { first: base + reservedAtStart, last: base + addressCount(prefix) - 1 - reservedAtEnd }
}

export function gatewayOf(cidr: string): string {
  return numberToAddress(cidrOf(cidr).base + 1)
}

/** Returns the block of size `prefix` at this index inside a network. */
export function subnetFor(networkCidr: string, index: number, prefix = 20): string {
  const network = cidrOf(networkCidr)
  const count = 2 ** (prefix - network.prefix)
  if (prefix < network.prefix || prefix > 32 || !Number.isInteger(index) || index < 0 || index >= count) {
    throw new RangeError(`${networkCidr} has no block ${index} of size /${prefix}`)
  }
  return `${numberToAddress(network.base + index * addressCount(prefix))}/${prefix}`
}

/** The address starts with 02 (locally administered, unicast); the other 40 bits are random. */
export function macFor(random: Uint8Array): string {
  if (random.length < 5) throw new RangeError('a MAC address needs 5 random bytes')
  return [2, ...random.subarray(0, 5)].map((byte) => byte.toString(16).padStart(2, '0')).join(':')
}
