import { BlockList, isIP } from 'node:net'
import { parseCidr } from '@slipway/contract'

/** Accepts an IPv4 or IPv6 block, or a single address. */
export function isAddressBlock(text: string): boolean {
  if (parseCidr(text)) return true
  const [address = '', prefix = '128', ...more] = text.split('/')
  const isPrefix = /^[0-9]{1,3}$/.test(prefix) && Number(prefix) <= 128
  return isIP(address) === 6 && !address.includes('%') && isPrefix && more.length === 0
}

/** Returns whether every address of the inner block is in the outer one. */
export const isBlockInside = (inner: string, outer: string): boolean =>
  prefixIn128Bits(inner) >= prefixIn128Bits(outer) &&
  isInBlockList(blockListOf([outer]), inner.split('/')[0] ?? '')

/**
 * IPv4 prefixes are counted in the IPv6 form (`::ffff:192.0.2.1`), because `BlockList` matches both forms.
 */
function prefixIn128Bits(block: string): number {
  const [address = '', prefix] = block.split('/')
  return isIP(address) === 6 ? Number(prefix ?? 128) : 96 + Number(prefix ?? 32)
}

/** IPv4 blocks also match addresses in IPv6 form (`::ffff:192.0.2.1`). */
export function blockListOf(blocks: string[]): BlockList {
  const list = new BlockList()
  for (const block of blocks) {
    const [address = '', prefix] = block.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    list.addSubnet(address, Number(prefix ?? (family === 'ipv6' ? 128 : 32)), family)
  }
  return list
}

export const isInBlockList = (list: BlockList, address: string): boolean =>
  isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
