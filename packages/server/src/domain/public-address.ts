import { isIP } from 'node:net'
import { blockListOf, isInBlockList } from './address-blocks.ts'

/** Blocks that IANA's special-purpose registries exclude from the public internet. */
const notPublic = blockListOf([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // Link-local addresses, which include the metadata services of cloud providers.
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  // Blocks inside 2000::/3: tunnels and translations that carry an IPv4 address, documentation, identifiers.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
])

const globalUnicast = blockListOf(['2000::/3'])

/**
 * Returns a function that decides whether the service may connect to an address. Public addresses, and
 * addresses in the ranges that the operator allows, are accepted.
 */
export function addressGuard(allowedRanges: string[]): (address: string) => boolean {
  const allowed = blockListOf(allowedRanges)
  const isPublic = (address: string) =>
    isIP(address) !== 0 &&
    !isInBlockList(notPublic, address) &&
    (isIP(address) === 4 || isInBlockList(globalUnicast, address))
  return (address) => isInBlockList(allowed, address) || isPublic(address)
}
