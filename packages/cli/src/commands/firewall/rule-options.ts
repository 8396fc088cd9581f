import type { FirewallRule } from '@slipway/sdk'
import type { OptionSpec } from '../../core/command.ts'
import { parseList } from '../../core/parse.ts'
import { type WaitFlags, waitOptions } from '../../core/progress.ts'

/** The options below put this into a command's input. */
export interface RuleFlags extends WaitFlags {
  protocol?: FirewallRule['protocols']
  from?: string[]
  to?: string[]
  port?: string[]
  sourcePort?: string[]
}

export const ruleOptions: OptionSpec[] = [
  { flags: '--protocol <protocols>', description: 'tcp, udp, icmp; several with commas', parse: parseList },
  {
    flags: '--from <places>',
    description: 'addresses, blocks, or names of VMs, subnets, networks',
    parse: parseList,
  },
  { flags: '--to <places>', description: 'likewise', parse: parseList },
  {
    flags: '--port <ports>',
    description: 'destination ports: 22,3000-8080; all if left out',
    parse: parseList,
  },
  { flags: '--source-port <ports>', description: 'source ports; all if left out', parse: parseList },
  ...waitOptions,
]

export const networkOption: OptionSpec = {
  flags: '--network <network>',
  description: 'network of the rule; default: the default one',
  complete: 'network',
}

export const directions = ['ingress', 'egress'] as const
export type Direction = (typeof directions)[number]
