/**
 * What an engine enforces for one VM: denies first, then allows, and whatever nothing matches is denied.
 * Rules are stateful: an answer to an allowed packet passes.
 */
export interface CompiledRule {
  ruleId: string
  action: 'allow' | 'deny'
  direction: 'ingress' | 'egress'
  protocols: ('tcp' | 'udp' | 'icmp')[]
  /** The other side: where the packet comes from (ingress) or goes to (egress). IPv4 blocks. */
  peers: string[]
  /** Inclusive ranges; an empty list means every port. */
  sourcePorts: PortRange[]
  destinationPorts: PortRange[]
}

export type PortRange = [from: number, to: number]
