import { isIPv6 } from 'node:net'

/**
 * Returns the text that identifies the client at an address: for IPv4, the address; for IPv6, its /64, because
 * one subscriber has a whole /64.
 */
export function clientOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped) return mapped
  if (!isIPv6(address)) return address
  const [left = '', right] = address.split('%', 1)[0]!.toLowerCase().split('::')
  const head = left === '' ? [] : left.split(':')
  const tail = right ? right.split(':') : []
  // An embedded IPv4 address counts as two groups.
  const tailGroups = tail.length + (right?.includes('.') ? 1 : 0)
  const missing = right === undefined ? 0 : 8 - head.length - tailGroups
  const groups = [...head, ...Array<string>(missing).fill('0'), ...tail].slice(0, 4)
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}
