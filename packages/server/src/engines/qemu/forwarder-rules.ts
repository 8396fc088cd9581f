import type { CompiledRule, PortRange } from '../../domain/firewall.ts'

/** How many ports of one VM are listened on. */
export const MAX_SERVED_PORTS = 64
export const SSH_GUEST_PORT = 22

export interface InboundConnection {
  source: string
  sourcePort: number
  destinationPort: number
}

export interface Verdict {
  isAllowed: boolean
  /** The rule that decided; '' when none matched. */
  ruleId: string
}

/** Denies first, then allows; what nothing matches is denied. */
export function decide(rules: CompiledRule[], connection: InboundConnection): Verdict {
  const matching = rules.filter((rule) => matches(rule, connection))
  const decisive = matching.find((rule) => rule.action === 'deny') ?? matching[0]
  return { isAllowed: decisive?.action === 'allow', ruleId: decisive?.ruleId ?? '' }
}

function matches(rule: CompiledRule, connection: InboundConnection): boolean {
  return (
    rule.direction === 'ingress' &&
    rule.protocols.includes('tcp') &&
    rule.peers.some((block) => contains(block, connection.source)) &&
    isWithin(rule.sourcePorts, connection.sourcePort) &&
    isWithin(rule.destinationPorts, connection.destinationPort)
  )
}

function isWithin(ranges: PortRange[], port: number): boolean {
  return ranges.length === 0 || ranges.some(([from, to]) => from <= port && port <= to)
}

function contains(block: string, address: string): boolean {
  const [base, prefixText] = block.split('/')
  const prefix = prefixText === undefined ? 32 : Number(prefixText)
  const mask = prefix === 0 ? 0 : (~0 << (32 - prefix)) >>> 0
  return (toNumber(base!) & mask) === (toNumber(address) & mask)
}

function toNumber(address: string): number {
  return address.split('.').reduce((sum, byte) => ((sum << 8) | Number(byte)) >>> 0, 0)
}

/**
 * The ports to listen on: SSH, and every port that an inbound TCP allow lists, up to the limit. What is too wide to
 * listen on is served on the ports that are listed elsewhere, and named in `notes`.
 */
export function servedPorts(rules: CompiledRule[]): { ports: number[]; notes: string[] } {
  const ports = new Set([SSH_GUEST_PORT])
  const notes: string[] = []
  for (const rule of rules) {
    if (rule.direction !== 'ingress' || rule.action !== 'allow') continue
    if (rule.protocols.includes('udp')) notes.push(`rule ${rule.ruleId}: udp from outside is not forwarded`)
    if (!rule.protocols.includes('tcp')) continue
    if (rule.destinationPorts.length === 0)
      notes.push(`rule ${rule.ruleId}: every port is allowed, only listed ports are forwarded`)
    for (const [from, to] of rule.destinationPorts) {
      const wanted = Array.from({ length: to - from + 1 }, (_, index) => from + index)
      const added = wanted.filter((port) => !ports.has(port))
      if (ports.size + added.length > MAX_SERVED_PORTS)
        notes.push(`rule ${rule.ruleId}: ports ${from}-${to} exceed ${MAX_SERVED_PORTS} forwarded ports`)
      else for (const port of added) ports.add(port)
    }
  }
  return { ports: [...ports].sort((a, b) => a - b), notes }
}
