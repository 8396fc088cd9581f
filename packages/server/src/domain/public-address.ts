import { BlockList, isIP } from 'node:net'

/** What the special-purpose registries of IANA keep from the public internet. */
const notPublic = new BlockList()
for (const [base, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Metadata services of clouds among them.
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  notPublic.addSubnet(base, prefix, 'ipv4')
// Inside 2000::/3: tunnels and translations that carry an IPv4 address, documentation, identifiers.
for (const [base, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
] as const)
  notPublic.addSubnet(base, prefix, 'ipv6')

const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')

/** Says which addresses may be reached: public ones, and those in the operator's ranges. */
export function addressGuard(allowedRanges: string[]): (address: string) => boolean {
  const allowed = new BlockList()
  for (const range of allowedRanges) {
    const [base, prefix] = range.split('/') as [string, string | undefined]
    const family = isIP(base) === 6 ? 'ipv6' : 'ipv4'
    allowed.addSubnet(base, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family)
  }
  return (address) => {
    const version = isIP(address)
    if (version === 0) return false
    const family = version === 6 ? 'ipv6' : 'ipv4'
    if (allowed.check(address, family)) return true
    if (family === 'ipv6' && !globalUnicast.check(address, family)) return false
    return !notPublic.check(address, family)
  }
}
