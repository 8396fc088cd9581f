import type { RouteBody } from '@slipway/sdk'
import { shellQuote } from '../../../lib/shell.ts'

type RuleBody = Omit<RouteBody<'firewallRuleCreate'>, 'vpc_network_id'>

/** Returns the CLI command that creates the rule. */
export function ruleCommand(rule: RuleBody, nameOf: (id: string) => string): string {
  const { name, action, direction, protocols, sources, destinations, source_ports, destination_ports } = rule
  const ends = (side: { cidr?: string; resource_id?: string }[]) =>
    shellQuote(side.map(({ cidr, resource_id = '' }) => cidr || nameOf(resource_id)).join(','))
  const option = (flag: string, value: string) => (value ? [`--${flag} ${value}`] : [])
  return [
    `slipway firewall create ${shellQuote(name || 'NAME')}`,
    `--action ${action} --direction ${direction} --protocol ${protocols.join(',')}`,
    ...option('port', (destination_ports ?? []).join(',')),
    ...option('source-port', (source_ports ?? []).join(',')),
    ...(sources.length > 0 ? [`--from ${ends(sources)}`] : []),
    ...(destinations.length > 0 ? [`--to ${ends(destinations)}`] : []),
  ].join(' ')
}
