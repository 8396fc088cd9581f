import type { FirewallRule } from '@slipway/sdk'
import type { OptionSpec } from '../../core/command.ts'
import { type WaitFlags, waitOptions } from '../../core/progress.ts'
import { protocols } from './rule-words.ts'

/** The options below put this into a command's input. */
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
    description: 'tcp, udp, icmp; several with commas',
    values: protocols,
    isList: true,
  },
  {
    flags: '--from <places>',
    description: 'addresses, blocks, or names of VMs, subnets, networks',
    isList: true,
  },
  { flags: '--to <places>', description: 'likewise', isList: true },
  {
    flags: '--port <ports>',
    description: 'destination ports: 22,3000-8080; all if left out',
    isList: true,
  },
  { flags: '--source-port <ports>', description: 'source ports; all if left out', isList: true },
  ...waitOptions,
]

export const networkOption: OptionSpec = {
  flags: '--network <network>',
  description: 'network of the rule; default: the default one',
  complete: 'network',
}

export const directions = ['ingress', 'egress'] as const
export type Direction = (typeof directions)[number]
