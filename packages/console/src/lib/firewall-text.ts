import { anywhere, cidrContains } from '@slipway/contract/cidr'
import type { FirewallEndpoint, FirewallRule, Network, RouteBody, Vm } from '@slipway/sdk'

type RuleParts = Pick<
  RouteBody<'firewallRuleCreate'>,
  | 'action'
  | 'direction'
  | 'protocols'
  | 'sources'
  | 'destinations'
  | 'source_ports'
  | 'destination_ports'
  | 'vpc_network_id'
>
type Endpoint = Partial<FirewallEndpoint>

/**
 * Returns a rule as text, such as "Allow tcp 22 from anywhere to every VM". With the name of its network, "every VM"
 * becomes "every VM in lab".
 */
export function ruleText(rule: RuleParts, nameOf: (id: string) => string, networkName = ''): string {
  const everyVm = networkName ? `every VM in ${networkName}` : 'every VM'
  const isInbound = rule.direction === 'ingress'
  const verb = rule.action === 'allow' ? 'Allow' : 'Deny'
  const ports = rule.destination_ports?.length ? ` ${list(rule.destination_ports)}` : ''
  const protocols = rule.protocols.length === 3 && !ports ? 'everything' : `${list(rule.protocols)}${ports}`
  const remoteName = (id: string) => (id === rule.vpc_network_id ? networkName || 'the network' : nameOf(id))
  const localName = (id: string) => (id === rule.vpc_network_id ? everyVm : nameOf(id))
  const from = isInbound
    ? endpointsText(rule.sources, remoteName, 'anywhere')
    : endpointsText(rule.sources, localName, everyVm)
  const to = isInbound
    ? endpointsText(rule.destinations, localName, everyVm)
    : endpointsText(rule.destinations, remoteName, 'anywhere')
  const sourcePorts = rule.source_ports?.length ? `, source port ${list(rule.source_ports)}` : ''
  return `${verb} ${protocols || '…'} from ${from} to ${to}${sourcePorts}`
}

function endpointsText(endpoints: Endpoint[], nameOf: (id: string) => string, all: string): string {
  const words = endpoints.map(({ cidr, resource_id }) =>
    resource_id ? nameOf(resource_id) : cidr === anywhere ? all : cidr || '…',
  )
  return list(words) || '…'
}

function list(words: string[]): string {
  if (words.length < 3) return words.join(' and ')
  return `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}

/** Returns the name of a rule's network if the project has several networks; empty if there is only one. */
export const networkNameOf = (
  { vpc_network_id }: Pick<RuleParts, 'vpc_network_id'>,
  networks: Network[] = [],
): string => (networks.length > 1 ? (networks.find(({ id }) => id === vpc_network_id)?.name ?? '') : '')

/** Returns the rules that apply to an interface of a VM. */
export function rulesOfInterface(
  rules: FirewallRule[],
  vm: Vm,
  nic: Vm['network_interfaces'][number],
): FirewallRule[] {
  const address = nic.ips[0]?.private_ipv4.address ?? ''
  const ids = new Set([vm.id, nic.subnet, nic.network])
  return rules.filter((rule) => {
    if (rule.vpc_network_id !== nic.network) return false
    const side = rule.direction === 'ingress' ? rule.destinations : rule.sources
    return side.some(({ cidr, resource_id }) =>
      resource_id ? ids.has(resource_id) : cidrContains(cidr, address),
    )
  })
}
