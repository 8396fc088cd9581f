import { parseCidr } from '@slipway/contract'
import { cidrContainsOrThrow, numberToAddress } from './addresses.ts'

/**
 * A rule as an engine enforces it for one VM. Deny rules come first, then allow rules, and packets that match
 * no rule are denied. Rules are stateful: replies to allowed packets pass.
 */
export interface CompiledRule {
  ruleId: string
  action: 'allow' | 'deny'
  direction: 'ingress' | 'egress'
  protocols: ('tcp' | 'udp' | 'icmp')[]
  /** The IPv4 blocks of the other side: the source for ingress, the destination for egress. */
  peers: string[]
  /** Inclusive ranges; an empty list means every port. */
  sourcePorts: PortRange[]
  destinationPorts: PortRange[]
}

export type PortRange = [from: number, to: number]

export type Protocol = CompiledRule['protocols'][number]

/** Exactly one field is set; the other is ''. */
export interface Endpoint {
  resource_id: string
  cidr: string
}

export interface FirewallRule {
  id: string
  action: 'allow' | 'deny'
  direction: 'ingress' | 'egress'
  sources: Endpoint[]
  destinations: Endpoint[]
  sourcePorts: string[]
  destinationPorts: string[]
  protocols: string[]
}

export interface FirewallVm {
  id: string
  privateAddress: string
  /** '' if the VM has none. */
  publicAddress: string
  subnetId: string
  networkId: string
}

export interface Packet {
  direction: 'ingress' | 'egress'
  protocol: Protocol
  /** The address at the other end. */
  peer: string
  sourcePort?: number
  destinationPort?: number
}

const PROTOCOLS: readonly Protocol[] = ['tcp', 'udp', 'icmp']
const portsPattern = /^([1-9][0-9]{0,4})(?:-([1-9][0-9]{0,4}))?$/
const maxPort = 65_535

/** Parses `"22"` or `"3000-8080"`. */
export function parsePort(text: string): PortRange | null {
  const parts = portsPattern.exec(text)
  if (!parts) return null
  const from = Number(parts[1])
  const to = Number(parts[2] ?? parts[1])
  return from <= to && to <= maxPort ? [from, to] : null
}

/** Throws on an invalid port: skipping it could leave an empty list, which means every port. */
function portRanges(texts: string[]): PortRange[] {
  return texts.map((text) => {
    const range = parsePort(text)
    if (!range) throw new RangeError(`not a port or port range: ${text}`)
    return range
  })
}

function isLocalTo(vm: FirewallVm, endpoint: Endpoint): boolean {
  if (endpoint.resource_id !== '') {
    return [vm.id, vm.subnetId, vm.networkId].includes(endpoint.resource_id)
  }
  return [vm.privateAddress, vm.publicAddress].some(
    (address) => address !== '' && cidrContainsOrThrow(endpoint.cidr, address),
  )
}

/** Returns each block once and in one notation, so that equal rules compile to equal text. */
function peerBlocks(endpoints: Endpoint[], resolve: (resourceId: string) => string[]): string[] {
  const blocks = endpoints
    .flatMap((endpoint) => (endpoint.resource_id === '' ? [endpoint.cidr] : resolve(endpoint.resource_id)))
    .map(parseCidr)
    .filter((block) => block !== null)
    .map(({ base, prefix }) => `${numberToAddress(base)}/${prefix}`)
  return [...new Set(blocks)].sort()
}

/**
 * Compiles the rules of a VM's network for this VM. `resolve` returns the IPv4 blocks of a VM, subnet or
 * network; an empty list if that resource no longer exists. A rule without peers matches nothing and is omitted.
 */
export function compileFirewall(
  vm: FirewallVm,
  rules: FirewallRule[],
  resolve: (resourceId: string) => string[],
): CompiledRule[] {
  const compiled: CompiledRule[] = []
  for (const rule of rules) {
    const [local, remote] =
      rule.direction === 'ingress' ? [rule.destinations, rule.sources] : [rule.sources, rule.destinations]
    if (!local.some((endpoint) => isLocalTo(vm, endpoint))) continue
    const peers = peerBlocks(remote, resolve)
    if (peers.length === 0) continue
    compiled.push({
      ruleId: rule.id,
      action: rule.action,
      direction: rule.direction,
      protocols: PROTOCOLS.filter((protocol) => rule.protocols.includes(protocol)),
      peers,
      sourcePorts: portRanges(rule.sourcePorts),
      destinationPorts: portRanges(rule.destinationPorts),
    })
  }
  const rank = (rule: CompiledRule) => `${rule.action === 'deny' ? 0 : 1}${rule.ruleId}`
  return compiled.sort((a, b) => (rank(a) < rank(b) ? -1 : 1))
}

/** A packet without a port matches only rules that apply to every port. */
function matchesPort(ranges: PortRange[], port: number | undefined): boolean {
  if (ranges.length === 0) return true
  return port !== undefined && ranges.some(([from, to]) => from <= port && port <= to)
}

function matches(rule: CompiledRule, packet: Packet): boolean {
  return (
    rule.direction === packet.direction &&
    rule.protocols.includes(packet.protocol) &&
    rule.peers.some((block) => cidrContainsOrThrow(block, packet.peer)) &&
    (packet.protocol === 'icmp' ||
      (matchesPort(rule.sourcePorts, packet.sourcePort) &&
        matchesPort(rule.destinationPorts, packet.destinationPort)))
  )
}

/** Returns the decision of the first rule that matches; `ruleId` is '' if no rule matches. */
export function decidePacket(compiled: CompiledRule[], packet: Packet): { allowed: boolean; ruleId: string } {
  const rule = compiled.find((candidate) => matches(candidate, packet))
  return { allowed: rule?.action === 'allow', ruleId: rule?.ruleId ?? '' }
}
