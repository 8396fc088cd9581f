import { cidrContains, parseCidr } from '@slipway/contract'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  cidrsOverlap,
  gatewayOf,
  isPrivateCidr,
  macFor,
  numberToAddress,
  subnetFor,
  usableRange,
} from '../../src/domain/addresses.ts'

const anyAddress = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const anyCidr = fc.tuple(anyAddress, fc.integer({ min: 0, max: 32 })).map(([address, prefix]) => {
  const size = 2 ** (32 - prefix)
  return `${numberToAddress(Math.floor(address / size) * size)}/${prefix}`
})

test('parseCidr reads blocks and treats a bare address as /32', () => {
  expect(parseCidr('10.0.0.0/8')).toEqual({ base: 10 * 2 ** 24, prefix: 8 })
  expect(parseCidr('0.0.0.0/0')).toEqual({ base: 0, prefix: 0 })
  expect(parseCidr('255.255.255.255')).toEqual({ base: 2 ** 32 - 1, prefix: 32 })
})

test.each([
  ['', '/', '10.0.0.0/', '/8', '10.0.0.0//8', '10.0.0.0/8/8'],
  ['010.0.0.1', '10.0.0.00', '10.0.0.0/08', '0x0a.0.0.1', '10.0.0.256'],
  ['10.0.0.1/8', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/+8', '10.0.0.0/8.0', '10.0.0.0/1e1'],
  [' 10.0.0.0/8', '10.0.0.0/8 ', '10.0.0.0/8\n', '10.0.0.0 /8', '10.0.0.0\n/8'],
  ['10.0.0', '10', '10.0.0.0.0', '1.2.3.4.', '::1', '::/0', 'localhost', '１0.0.0.0', '10.0.0.0/２4'],
])('parseCidr rejects %s and similar text', (...texts) => {
  for (const text of texts) expect(parseCidr(text), JSON.stringify(text)).toBeNull()
})

test('parseCidr accepts a block exactly when its host bits are zero', () => {
  fc.assert(
    fc.property(anyAddress, fc.integer({ min: 0, max: 32 }), (address, prefix) => {
      const parsed = parseCidr(`${numberToAddress(address)}/${prefix}`)
      const hasHostBits = BigInt(address) % 2n ** BigInt(32 - prefix) !== 0n
      expect(parsed).toEqual(hasHostBits ? null : { base: address, prefix })
    }),
  )
})

test('an address is converted to a number and back', () => {
  expect(numberToAddress(0x01020304)).toBe('1.2.3.4')
  expect(() => numberToAddress(2 ** 32)).toThrow(RangeError)
  fc.assert(fc.property(anyAddress, (n) => parseCidr(numberToAddress(n))?.base === n))
})

test('address blocks overlap if and only if one contains the first address of the other', () => {
  fc.assert(
    fc.property(anyCidr, anyCidr, (a, b) => {
      const holdsBase = (outer: string, inner: string) =>
        cidrContains(outer, numberToAddress(parseCidr(inner)!.base))
      expect(cidrsOverlap(a, b)).toBe(holdsBase(a, b) || holdsBase(b, a))
      expect(cidrsOverlap(a, b)).toBe(cidrsOverlap(b, a))
    }),
  )
})

test('address blocks contain themselves, and each other only when equal', () => {
  fc.assert(
    fc.property(anyCidr, anyCidr, (a, b) => {
      expect(cidrContains(a, a)).toBe(true)
      if (a !== b) expect(cidrContains(a, b) && cidrContains(b, a)).toBe(false)
    }),
  )
  expect(cidrContains('10.0.0.0/24', '10.0.0.255')).toBe(true)
  expect(cidrContains('10.0.0.0/24', '10.0.1.0')).toBe(false)
  expect(cidrContains('10.0.0.0/24', '10.0.0.0/23')).toBe(false)
})

test.each([
  ['10.0.0.0/8', true],
  ['10.255.255.0/24', true],
  ['172.16.0.0/12', true],
  ['172.31.255.255', true],
  ['192.168.4.0/22', true],
  ['172.32.0.0/16', false],
  ['192.168.0.0/15', false],
  ['0.0.0.0/0', false],
  ['100.64.0.0/10', false],
  ['127.0.0.0/8', false],
  ['nonsense', false],
])('%s is a private block: %s', (text, isPrivate) => {
  expect(isPrivateCidr(text)).toBe(isPrivate)
})

test('a subnet reserves its first five addresses and its last', () => {
  const { first, last } = usableRange('172.27.16.0/20')
  expect(numberToAddress(first)).toBe('172.27.16.5')
  expect(numberToAddress(last)).toBe('172.27.31.254')
  const smallest = usableRange('10.0.0.16/28')
  expect(smallest.last - smallest.first + 1).toBe(10)
  expect(() => usableRange('10.0.0.0/30')).toThrow(RangeError)
})

test('the gateway of a subnet is its second address', () => {
  expect(gatewayOf('172.27.16.0/20')).toBe('172.27.16.1')
})

test('a network splits into blocks that are inside it and do not overlap', () => {
  expect(subnetFor('172.27.0.0/16', 0)).toBe('172.27.0.0/20')
  expect(subnetFor('172.27.0.0/16', 15)).toBe('172.27.240.0/20')
  expect(() => subnetFor('172.27.0.0/16', 16)).toThrow(RangeError)
  expect(() => subnetFor('172.27.0.0/24', 0)).toThrow(RangeError)
  const index = fc.integer({ min: 0, max: 15 })
  fc.assert(
    fc.property(index, index, (i, j) => {
      const [a, b] = [subnetFor('10.5.0.0/16', i), subnetFor('10.5.0.0/16', j)]
      expect(cidrContains('10.5.0.0/16', a)).toBe(true)
      expect(cidrsOverlap(a, b)).toBe(i === j)
    }),
  )
})

test('MAC addresses are locally administered and unicast', () => {
  expect(macFor(Uint8Array.of(0, 1, 0xab, 0xff, 16, 99))).toBe('02:00:01:ab:ff:10')
  expect(() => macFor(new Uint8Array(4))).toThrow(RangeError)
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 5, maxLength: 8 }), (random) => {
      const mac = macFor(random)
      expect(mac).toMatch(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/)
      const first = Number.parseInt(mac.slice(0, 2), 16)
      expect([first & 1, first & 2]).toEqual([0, 2])
    }),
  )
})
