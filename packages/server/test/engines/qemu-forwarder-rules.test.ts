import { expect, test } from 'vitest'
import type { CompiledRule } from '../../src/domain/firewall.ts'
import { isInboundAllowed, servedPorts } from '../../src/engines/qemu/forwarder/rules.ts'

const rule = (changes: Partial<CompiledRule>): CompiledRule => ({
  ...{ ruleId: 'r', action: 'allow', direction: 'ingress', protocols: ['tcp'], peers: ['0.0.0.0/0'] },
  ...{ sourcePorts: [], destinationPorts: [] },
  ...changes,
})
const from = (source: string, destinationPort: number, sourcePort = 40_000) => ({
  source,
  sourcePort,
  destinationPort,
})

test('the forwarder denies inbound traffic that no rule allows', () => {
  expect(isInboundAllowed([], from('127.0.0.1', 22))).toBe(false)
})

test('a deny rule of the forwarder overrides every allow rule, in any order', () => {
  const rules = [rule({ ruleId: 'yes' }), rule({ ruleId: 'no', action: 'deny', peers: ['10.0.0.0/8'] })]
  for (const order of [rules, rules.toReversed()]) {
    expect(isInboundAllowed(order, from('10.1.2.3', 22))).toBe(false)
    expect(isInboundAllowed(order, from('11.1.2.3', 22))).toBe(true)
  }
})

test('inbound rules of the forwarder match source blocks to the bit', () => {
  const rules = [rule({ peers: ['192.168.1.128/25', '203.0.113.7'] })]
  expect(isInboundAllowed(rules, from('192.168.1.127', 22))).toBe(false)
  expect(isInboundAllowed(rules, from('192.168.1.128', 22))).toBe(true)
  expect(isInboundAllowed(rules, from('203.0.113.7', 22))).toBe(true)
  expect(isInboundAllowed(rules, from('203.0.113.8', 22))).toBe(false)
})

test('inbound rules of the forwarder match source and destination ports', () => {
  const rules = [rule({ sourcePorts: [[1000, 2000]], destinationPorts: [[80, 80]] })]
  expect(isInboundAllowed(rules, from('1.2.3.4', 80, 1500))).toBe(true)
  expect(isInboundAllowed(rules, from('1.2.3.4', 80, 2001))).toBe(false)
  expect(isInboundAllowed(rules, from('1.2.3.4', 81, 1500))).toBe(false)
})

test('inbound rules of the forwarder ignore outbound rules and other protocols', () => {
  expect(isInboundAllowed([rule({ direction: 'egress' })], from('1.2.3.4', 22))).toBe(false)
  expect(isInboundAllowed([rule({ protocols: ['udp'] })], from('1.2.3.4', 22))).toBe(false)
})

test('the forwarder listens on SSH and on the ports of inbound allow rules', () => {
  const rules = [
    rule({
      destinationPorts: [
        [80, 81],
        [443, 443],
      ],
    }),
    rule({ action: 'deny', destinationPorts: [[9000, 9000]] }),
    rule({ direction: 'egress', destinationPorts: [[25, 25]] }),
  ]
  expect(servedPorts(rules)).toEqual({ ports: [22, 80, 81, 443], notes: [] })
})

test('the forwarder listens on at most 64 ports, and reports the ones left out', () => {
  const rules = [
    rule({
      ruleId: 'wide',
      destinationPorts: [
        [3000, 8080],
        [80, 80],
      ],
    }),
    rule({ ruleId: 'all' }),
  ]
  const { ports, notes } = servedPorts(rules)
  expect(ports).toEqual([22, 80])
  expect(notes).toHaveLength(2)
  expect(notes.join()).toMatch(/wide.*3000-8080.*all.*every port/)
})

test('the forwarder does not listen on udp ports, and reports it', () => {
  const { ports, notes } = servedPorts([
    rule({ ruleId: 'dns', protocols: ['udp'], destinationPorts: [[53, 53]] }),
  ])
  expect(ports).toEqual([22])
  expect(notes).toEqual(['rule dns: UDP from outside is not forwarded'])
})
