import { type CompiledRule, decidePacket } from '../../../domain/firewall.ts'

/** How many ports of one VM are listened on. */
export const maxServedPorts = 64
export const sshGuestPort = 22

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
  const ordered = rules.toSorted((a, b) => Number(a.action === 'allow') - Number(b.action === 'allow'))
  const { source, sourcePort, destinationPort } = connection
  const packet = { direction: 'ingress', protocol: 'tcp', peer: source, sourcePort, destinationPort } as const
  const { allowed, ruleId } = decidePacket(ordered, packet)
  return { isAllowed: allowed, ruleId }
}

/**
 * The ports to listen on: SSH, and every port that an inbound TCP allow lists, up to the limit. What is too wide to
 * listen on is served on the ports that are listed elsewhere, and named in `notes`.
 */
export function servedPorts(rules: CompiledRule[]): { ports: number[]; notes: string[] } {
  const ports = new Set([sshGuestPort])
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
      if (ports.size + added.length > maxServedPorts)
        notes.push(`rule ${rule.ruleId}: ports ${from}-${to} exceed ${maxServedPorts} forwarded ports`)
      else for (const port of added) ports.add(port)
    }
  }
  return { ports: [...ports].sort((a, b) => a - b), notes }
}
