import type { FirewallRule, Subnet } from '@slipway/contract'
import { Failure } from '../../../domain/failure.ts'
import { listOf, type Members, memberOf, withoutEmpty } from '../members.ts'

const allPorts = '1-65535'

export const ruleShape = (rule: FirewallRule) => ({
  ...rule,
  state: rule.state === 'active' ? 'active' : 'inactive',
  source_ports: portsShape(rule.source_ports),
  destination_ports: portsShape(rule.destination_ports),
})

export const subnetShape = (subnet: Subnet) => ({ ...subnet, nat_gateways: [] })

const portsShape = (ports: string[]) => (ports.length === 0 ? [allPorts] : ports)

/** Converts the fields of a rule to those of Slipway's own API. */
export const ruleFields = (rule: Members): Members =>
  withoutEmpty({
    name: rule.name,
    vpc_network_id: rule.vpc_network_id,
    action: word(rule.action, 'action_'),
    direction: word(rule.direction, 'direction_'),
    protocols: rule.protocols,
    sources: endpointFields(rule.sources, 'sources'),
    destinations: endpointFields(rule.destinations, 'destinations'),
    source_ports: portFields(rule.source_ports),
    destination_ports: portFields(rule.destination_ports),
  })

const word = (value: unknown, prefix: string) =>
  typeof value === 'string' ? value.toLowerCase().replace(prefix, '') : value

/** An empty list means all ports. */
const portFields = (ports: unknown) =>
  listOf(ports).some((port) => port === '*' || port === allPorts) ? [] : ports

/**
 * Refuses plain addresses: responses would show them as CIDR blocks, which clients would mistake for a change
 * of the rule.
 */
function endpointFields(endpoints: unknown, member: string): unknown {
  if (!Array.isArray(endpoints)) return endpoints
  return endpoints.map((endpoint, index) => {
    const cidr = memberOf(endpoint, 'cidr')
    if (typeof cidr === 'string' && cidr !== '' && !cidr.includes('/'))
      throw new Failure(
        'invalid_argument',
        `${member}/${index}/cidr: ${cidr.slice(0, 60)} is a plain address; write it as a CIDR block, such as 203.0.113.7/32.`,
      )
    return withoutEmpty({ cidr, resource_id: memberOf(endpoint, 'resource_id') })
  })
}
