import type { FirewallRule } from '@slipway/sdk'
import { type OptionSpec, oneOf } from '../../core/command.ts'
import { type WaitFlags, waitOptions } from '../../core/progress.ts'
import { protocols } from './rule-words.ts'

/** The values of `ruleOptions`. */
export interface RuleFlags extends WaitFlags {
  protocol?: FirewallRule['protocols']
  from?: string[]
  to?: string[]
  port?: string[]
  sourcePort?: string[]
}

export const ruleOptions: OptionSpec[] = [
  {
    flags: '--protocol <protocols>',
    description: 'protocols, separated by commas: tcp, udp, icmp',
    values: protocols,
    isList: true,
  },
  {
    flags: '--from <addresses>',
    description: 'sources: addresses, CIDR blocks, or names of VMs, subnets or networks',
    isList: true,
  },
  { flags: '--to <addresses>', description: 'destinations, in the same format as --from', isList: true },
  {
    flags: '--port <ports>',
    description: 'destination ports, for example 22,3000-8080 (default: all ports)',
    isList: true,
  },
  { flags: '--source-port <ports>', description: 'source ports (default: all ports)', isList: true },
  ...waitOptions,
]

export const networkOption: OptionSpec = {
  flags: '--network <network>',
  description: 'network of the rule (default: default-vpc-network)',
  complete: 'network',
}

export type Direction = 'inbound' | 'outbound'

export const directionOption: OptionSpec = {
  flags: '--direction <direction>',
  ...oneOf(['inbound', 'outbound']),
  synonyms: { ingress: 'inbound', egress: 'outbound' },
  default: 'inbound',
}

/** The API says ingress and egress. */
export const apiDirection = { inbound: 'ingress', outbound: 'egress' } as const
export const directionWord = { ingress: 'inbound', egress: 'outbound' } as const
