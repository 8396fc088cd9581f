import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  compileFirewall,
  decidePacket,
  type Endpoint,
  type FirewallRule,
  type FirewallVm,
  type Packet,
  parsePort,
} from '../../src/domain/firewall.ts'

const vm: FirewallVm = {
  id: 'vm-1',
  privateAddress: '172.27.0.5',
  publicAddress: '198.18.0.7',
  subnetId: 'subnet-1',
  networkId: 'network-1',
}
const blocks: Record<string, string[]> = {
  'vm-1': ['172.27.0.5', '198.18.0.7'],
  'vm-2': ['172.27.0.6', ''],
  'subnet-1': ['172.27.0.0/20'],
  'network-1': ['172.27.0.0/16'],
}
const resolve = (id: string) => blocks[id] ?? []
const cidr = (text: string): Endpoint => ({ resource_id: '', cidr: text })
const resource = (id: string): Endpoint => ({ resource_id: id, cidr: '' })

function rule(id: string, change: Partial<FirewallRule> = {}): FirewallRule {
  return {
    id,
    action: 'allow',
    direction: 'ingress',
    sources: [cidr('0.0.0.0/0')],
    destinations: [resource('vm-1')],
    sourcePorts: [],
    destinationPorts: [],
    protocols: ['tcp'],
    ...change,
  }
}

const sshFrom = (peer: string): Packet => ({
  direction: 'ingress',
  protocol: 'tcp',
  peer,
  sourcePort: 40_000,
  destinationPort: 22,
})

test.each([
  ['22', [22, 22]],
  ['1-65535', [1, 65535]],
  ['80-80', [80, 80]],
])('parsePort reads %s', (text, range) => expect(parsePort(text)).toEqual(range))

test.each([
  '',
  '0',
  '022',
  '65536',
  '99999',
  '80-79',
  '1-',
  '-1',
  '1-2-3',
  ' 22',
  '22 ',
  '22\n',
  '1.5',
  '+1',
  '0-5',
  '1–2',
])('parsePort rejects %j', (text) => expect(parsePort(text)).toBeNull())

test('parsePort accepts exactly the ascending ranges within 1 to 65535', () => {
  const port = fc.integer({ min: 0, max: 70_000 })
  fc.assert(
    fc.property(port, port, (from, to) => {
      const isValid = from >= 1 && from <= to && to <= 65_535
      expect(parsePort(`${from}-${to}`)).toEqual(isValid ? [from, to] : null)
    }),
  )
})

test.each([
  ['its id', resource('vm-1'), true],
  ['its subnet', resource('subnet-1'), true],
  ['its network', resource('network-1'), true],
  ['a block around its private address', cidr('172.27.0.0/24'), true],
  ['its public address', cidr('198.18.0.7'), true],
  ['another VM', resource('vm-2'), false],
  ['another block', cidr('10.0.0.0/8'), false],
])('a rule for %s (%j) applies to the VM: %s', (_what, local, concerns) => {
  expect(compileFirewall(vm, [rule('r', { destinations: [local] })], resolve).length).toBe(concerns ? 1 : 0)
  const outward = rule('r', { direction: 'egress', sources: [local], destinations: [cidr('0.0.0.0/0')] })
  expect(compileFirewall(vm, [outward], resolve).length).toBe(concerns ? 1 : 0)
})

test('a rule also applies to a VM without a public address', () => {
  const inside = { ...vm, publicAddress: '' }
  expect(compileFirewall(inside, [rule('r', { destinations: [cidr('0.0.0.0/0')] })], resolve)).toHaveLength(1)
  expect(compileFirewall(inside, [rule('r', { destinations: [cidr('198.18.0.7')] })], resolve)).toEqual([])
})

test('compileFirewall lists each peer once, in normalized blocks', () => {
  const sources = [cidr('172.27.0.6'), resource('vm-2'), resource('subnet-1'), cidr('172.27.0.6/32')]
  expect(compileFirewall(vm, [rule('r', { sources })], resolve)).toEqual([
    {
      ruleId: 'r',
      action: 'allow',
      direction: 'ingress',
      protocols: ['tcp'],
      peers: ['172.27.0.0/20', '172.27.0.6/32'],
      sourcePorts: [],
      destinationPorts: [],
    },
  ])
})

test('compileFirewall drops a rule whose peers no longer exist, and follows peers whose address changed', () => {
  const fromOther = [rule('r', { sources: [resource('vm-2')] })]
  expect(compileFirewall(vm, fromOther, () => [])).toEqual([])
  expect(compileFirewall(vm, fromOther, () => ['172.27.0.9'])[0]!.peers).toEqual(['172.27.0.9/32'])
})

test('compileFirewall puts deny rules first and orders each kind by rule id', () => {
  const rules = [rule('c'), rule('b', { action: 'deny' }), rule('a'), rule('d', { action: 'deny' })]
  expect(compileFirewall(vm, rules, resolve).map((r) => r.ruleId)).toEqual(['b', 'd', 'a', 'c'])
})

test('compileFirewall never treats an invalid port list as every port', () => {
  expect(() => compileFirewall(vm, [rule('r', { destinationPorts: ['0'] })], resolve)).toThrow(RangeError)
})

test('decidePacket matches ports on both sides, and ignores them for icmp', () => {
  const compiled = compileFirewall(
    vm,
    [
      rule('r', {
        protocols: ['tcp', 'icmp'],
        sourcePorts: ['1024-65535'],
        destinationPorts: ['22', '80-90'],
      }),
    ],
    resolve,
  )
  expect(decidePacket(compiled, sshFrom('9.9.9.9'))).toEqual({ allowed: true, ruleId: 'r' })
  expect(decidePacket(compiled, { ...sshFrom('9.9.9.9'), destinationPort: 90 }).allowed).toBe(true)
  expect(decidePacket(compiled, { ...sshFrom('9.9.9.9'), destinationPort: 91 }).allowed).toBe(false)
  expect(decidePacket(compiled, { ...sshFrom('9.9.9.9'), sourcePort: 1023 }).allowed).toBe(false)
  expect(decidePacket(compiled, { direction: 'ingress', protocol: 'icmp', peer: '9.9.9.9' }).allowed).toBe(
    true,
  )
})

test('decidePacket does not allow a packet whose port is unknown if the rule is only for some ports', () => {
  const compiled = compileFirewall(vm, [rule('r', { destinationPorts: ['22'] })], resolve)
  expect(decidePacket(compiled, { direction: 'ingress', protocol: 'tcp', peer: '9.9.9.9' }).allowed).toBe(
    false,
  )
})

const anyEndpoint = fc.oneof(
  fc.constantFrom('vm-1', 'vm-2', 'subnet-1', 'network-1', 'gone').map(resource),
  fc
    .constantFrom('0.0.0.0/0', '172.27.0.0/16', '172.27.0.5', '172.27.0.6', '198.18.0.7', '9.9.9.8/30')
    .map(cidr),
)
const somePorts = fc.array(fc.constantFrom('22', '80', '20-30', '1-65535'), { maxLength: 2 })
const someEndpoints = fc.array(anyEndpoint, { minLength: 1, maxLength: 3 })
const anyRules = fc.uniqueArray(
  fc.record({
    id: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    action: fc.constantFrom('allow' as const, 'deny' as const),
    direction: fc.constantFrom('ingress' as const, 'egress' as const),
    sources: someEndpoints,
    destinations: someEndpoints,
    sourcePorts: somePorts,
    destinationPorts: somePorts,
    protocols: fc.uniqueArray(fc.constantFrom('tcp', 'udp', 'icmp'), { minLength: 1 }),
  }),
  { selector: (r) => r.id, maxLength: 6 },
)
const anyPacket = fc.record({
  direction: fc.constantFrom('ingress' as const, 'egress' as const),
  protocol: fc.constantFrom('tcp' as const, 'udp' as const, 'icmp' as const),
  peer: fc.constantFrom('172.27.0.5', '172.27.0.6', '172.27.99.1', '9.9.9.9', '198.18.0.7', '8.8.8.8'),
  sourcePort: fc.constantFrom(22, 25, 80, 40_000),
  destinationPort: fc.constantFrom(22, 25, 80, 40_000),
})

/** Returns whether a rule matches a packet of `vm`. Compares the bits of addresses, independently of the compiler. */
function ruleMatches(r: FirewallRule, packet: Packet): boolean {
  const bits = (address: string) =>
    address
      .split('.')
      .map((octet) => Number(octet).toString(2).padStart(8, '0'))
      .join('')
  const inBlock = (block: string, address: string) => {
    const [base = '', prefix = '32'] = block.split('/')
    return address !== '' && block !== '' && bits(address).startsWith(bits(base).slice(0, Number(prefix)))
  }
  const holds = (endpoint: Endpoint, address: string) =>
    (endpoint.cidr === '' ? resolve(endpoint.resource_id) : [endpoint.cidr]).some((b) => inBlock(b, address))
  const inPorts = (texts: string[], port: number | undefined) =>
    packet.protocol === 'icmp' ||
    texts.length === 0 ||
    texts.some((text) => {
      const [from, to = from] = text.split('-').map(Number)
      return port! >= from! && port! <= to!
    })
  const isIn = packet.direction === 'ingress'
  const own = isIn ? r.destinations : r.sources
  const other = isIn ? r.sources : r.destinations
  return (
    r.direction === packet.direction &&
    r.protocols.includes(packet.protocol) &&
    own.some((endpoint) => holds(endpoint, vm.privateAddress) || holds(endpoint, vm.publicAddress)) &&
    other.some((endpoint) => holds(endpoint, packet.peer)) &&
    inPorts(r.sourcePorts, packet.sourcePort) &&
    inPorts(r.destinationPorts, packet.destinationPort)
  )
}

test('the decision on any packet equals a naive evaluation: some allow rule and no deny rule matches', () => {
  fc.assert(
    fc.property(anyRules, anyPacket, (rules, packet) => {
      const matching = rules.filter((r) => ruleMatches(r, packet))
      const isAllowed = matching.length > 0 && matching.every((r) => r.action === 'allow')
      const verdict = decidePacket(compileFirewall(vm, rules, resolve), packet)
      expect(verdict.allowed).toBe(isAllowed)
      if (matching.length === 0) expect(verdict.ruleId).toBe('')
      else expect(matching.map((r) => r.id)).toContain(verdict.ruleId)
    }),
    { numRuns: 1000 },
  )
})

test('a deny rule for the same packets overrides every allow rule', () => {
  fc.assert(
    fc.property(anyRules, anyPacket, fc.nat(6), (rules, packet, at) => {
      const denial = rules
        .filter((r) => r.action === 'allow')
        .map((r) => ({ ...r, id: `${r.id}-deny`, action: 'deny' as const }))
      const all = [...rules.slice(0, at), ...denial, ...rules.slice(at)]
      expect(decidePacket(compileFirewall(vm, all, resolve), packet).allowed).toBe(false)
    }),
  )
})

test('no packet passes without a rule', () => {
  fc.assert(
    fc.property(anyPacket, (packet) => {
      expect(decidePacket(compileFirewall(vm, [], resolve), packet)).toEqual({ allowed: false, ruleId: '' })
    }),
  )
})

test('the order of firewall rules and endpoints does not matter', () => {
  fc.assert(
    fc.property(anyRules, (rules) => {
      const turned = rules.toReversed().map((r) => ({
        ...r,
        sources: r.sources.toReversed(),
        destinations: r.destinations.toReversed(),
      }))
      expect(compileFirewall(vm, turned, resolve)).toEqual(compileFirewall(vm, rules, resolve))
    }),
  )
})
