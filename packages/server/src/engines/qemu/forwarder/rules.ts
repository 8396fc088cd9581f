import { type CompiledRule, decidePacket } from '../../../domain/firewall.ts'

const maxServedPorts = 64
export const sshGuestPort = 22

export interface InboundConnection {
  source: string
  sourcePort: number
  destinationPort: number
}

/** Deny rules are checked before allow rules. A connection that no rule matches is denied. */
export function isInboundAllowed(rules: CompiledRule[], connection: InboundConnection): boolean {
  const ordered = rules.toSorted((a, b) => Number(a.action === 'allow') - Number(b.action === 'allow'))
  const { source: peer, sourcePort, destinationPort } = connection
  const packet = { direction: 'ingress', protocol: 'tcp', peer, sourcePort, destinationPort } as const
  return decidePacket(ordered, packet).allowed
}

/**
 * The ports to listen on: SSH, and every port that an inbound TCP allow rule lists, up to the limit. `notes`
 * lists what is not forwarded. A rule that allows every port takes effect only for ports that other rules
 * list.
 */
export function servedPorts(rules: CompiledRule[]): { ports: number[]; notes: string[] } {
  const ports = new Set([sshGuestPort])
  const notes: string[] = []
  for (const rule of rules) {
    if (rule.direction !== 'ingress' || rule.action !== 'allow') continue
    if (rule.protocols.includes('udp')) notes.push(`rule ${rule.ruleId}: UDP from outside is not forwarded`)
    if (!rule.protocols.includes('tcp')) continue
    if (rule.destinationPorts.length === 0)
      notes.push(`rule ${rule.ruleId} allows every port, but only listed ports are forwarded`)
    for (const [from, to] of rule.destinationPorts) {
      const wanted = Array.from({ length: to - from + 1 }, (_, index) => from + index)
      const added = wanted.filter((port) => !ports.has(port))
      if (ports.size + added.length > maxServedPorts)
        notes.push(
          `rule ${rule.ruleId}: ports ${from}-${to} exceed the limit of ${maxServedPorts} forwarded ports`,
        )
      else for (const port of added) ports.add(port)
    }
  }
  return { ports: [...ports].sort((a, b) => a - b), notes }
}
