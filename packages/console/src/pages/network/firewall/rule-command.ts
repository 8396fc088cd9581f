import type { RouteBody } from '@slipway/sdk'
import { shellQuote } from '../../../lib/shell.ts'

type RuleBody = Omit<RouteBody<'firewallRuleCreate'>, 'vpc_network_id'>
type RuleParts = Omit<RuleBody, 'action' | 'direction'>
type NameOf = (id: string) => string

/** The network of `slipway firewall create` without `--network`. */
const defaultNetwork = 'default-vpc-network'
const directionWord = { ingress: 'inbound', egress: 'outbound' } as const

/** Returns the CLI command that creates the rule in the network with the given name. */
export const createRuleCommand = (rule: RuleBody, network: string, nameOf: NameOf): string =>
  [
    `slipway firewall create ${shellQuote(rule.name || 'NAME')}`,
    `--action ${rule.action} --direction ${directionWord[rule.direction]}`,
    ...(network === defaultNetwork ? [] : [`--network ${shellQuote(network)}`]),
    ...optionsOf(rule, nameOf)
      .filter(([, value]) => value !== '')
      .map(optionText),
  ].join(' ')

/** Returns the CLI command that changes the rule, with an option for each difference. */
export function changeRuleCommand(rule: RuleParts, wanted: RuleParts, nameOf: NameOf): string {
  const old = new Map(optionsOf(rule, nameOf))
  const options = [['name', wanted.name] as const, ...optionsOf(wanted, nameOf)].filter(
    ([flag, value]) => value !== (flag === 'name' ? rule.name : old.get(flag)),
  )
  return [`slipway firewall change ${shellQuote(rule.name)}`, ...options.map(optionText)].join(' ')
}

const optionText = ([flag, value]: readonly [flag: string, value: string]): string =>
  `--${flag} ${shellQuote(value)}`

function optionsOf(rule: RuleParts, nameOf: NameOf): [flag: string, value: string][] {
  const ends = (side: RuleParts['sources']) =>
    side.map(({ cidr, resource_id = '' }) => cidr || nameOf(resource_id)).join(',')
  return [
    ['protocol', rule.protocols.join(',')],
    ['port', (rule.destination_ports ?? []).join(',')],
    ['source-port', (rule.source_ports ?? []).join(',')],
    ['from', ends(rule.sources)],
    ['to', ends(rule.destinations)],
  ]
}
