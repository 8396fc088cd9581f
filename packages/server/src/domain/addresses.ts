/** IPv4 only, written by hand: libraries read `010.0.0.1` as octal or `1.2` as an address, and we refuse both. */
export interface Cidr {
  base: number
  prefix: number
}

const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
const ADDRESS = new RegExp(`^${OCTET}\\.${OCTET}\\.${OCTET}\\.${OCTET}$`)
const PREFIX = /^(3[0-2]|[12]?[0-9])$/
const PRIVATE_BLOCKS = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']

/** The first address is the network's, the second the gateway's; three more are for services to come. */
const RESERVED_AT_START = 5
const RESERVED_AT_END = 1

function readAddress(text: string): number | null {
  const octets = ADDRESS.exec(text)
  if (!octets) return null
  return octets.slice(1).reduce((sum, octet) => sum * 256 + Number(octet), 0)
}

function sizeOf(prefix: number): number {
  return 2 ** (32 - prefix)
}

/** A block whose host bits are zero, or a bare address (a /32); null for anything else. */
export function parseCidr(text: string): Cidr | null {
  const slash = text.indexOf('/')
  const base = readAddress(slash < 0 ? text : text.slice(0, slash))
  if (base === null) return null
  if (slash < 0) return { base, prefix: 32 }
  const prefixText = text.slice(slash + 1)
  if (!PREFIX.test(prefixText)) return null
  const prefix = Number(prefixText)
  return base % sizeOf(prefix) === 0 ? { base, prefix } : null
}

function cidrOf(text: string): Cidr {
  const cidr = parseCidr(text)
  if (!cidr) throw new RangeError(`not an IPv4 block: ${text}`)
  return cidr
}

function blockContains(outer: Cidr, inner: Cidr): boolean {
  return inner.base >= outer.base && inner.base + sizeOf(inner.prefix) <= outer.base + sizeOf(outer.prefix)
}

/** False for text that is no block at all. */
export function isPrivateCidr(text: string): boolean {
  const cidr = parseCidr(text)
  return cidr !== null && PRIVATE_BLOCKS.some((block) => blockContains(cidrOf(block), cidr))
}

export function cidrsOverlap(a: string, b: string): boolean {
  const [x, y] = [cidrOf(a), cidrOf(b)]
  return blockContains(x, y) || blockContains(y, x)
}

export function cidrContains(outer: string, innerCidrOrAddress: string): boolean {
  return blockContains(cidrOf(outer), cidrOf(innerCidrOrAddress))
}

export function addressToNumber(text: string): number {
  const address = readAddress(text)
  if (address === null) throw new RangeError(`not an IPv4 address: ${text}`)
  return address
}

export function numberToAddress(n: number): string {
  if (!Number.isInteger(n) || n < 0 || n >= 2 ** 32) throw new RangeError(`not an IPv4 address: ${n}`)
  return [24, 16, 8, 0].map((shift) => Math.floor(n / 2 ** shift) % 256).join('.')
}

/** What VMs may get of a subnet. Blocks smaller than /29 have nothing to give. */
export function usableRange(cidr: string): { first: number; last: number } {
  const { base, prefix } = cidrOf(cidr)
  if (prefix > 29) throw new RangeError(`too small to hold a VM: ${cidr}`)
  return { first: base + RESERVED_AT_START, last: base + sizeOf(prefix) - 1 - RESERVED_AT_END }
}

export function gatewayOf(cidr: string): string {
  return numberToAddress(cidrOf(cidr).base + 1)
}

/** The `index`th block of size `prefix` inside a network. */
export function subnetFor(networkCidr: string, index: number, prefix = 20): string {
  const network = cidrOf(networkCidr)
  const count = 2 ** (prefix - network.prefix)
  if (prefix < network.prefix || prefix > 32 || !Number.isInteger(index) || index < 0 || index >= count) {
    throw new RangeError(`${networkCidr} has no block ${index} of size /${prefix}`)
  }
  return `${numberToAddress(network.base + index * sizeOf(prefix))}/${prefix}`
}

/** Starts with 02: locally administered and unicast, the other 40 bits random. */
export function macFor(random: Uint8Array): string {
  if (random.length < 5) throw new RangeError('a MAC address needs 5 random bytes')
  return [2, ...random.subarray(0, 5)].map((byte) => byte.toString(16).padStart(2, '0')).join(':')
}
