import type { FirewallEndpoint, FirewallRule } from '@slipway/sdk'
import { labelsColumn, labelsText } from '../../core/labels.ts'
import { idColumn, ownName, type Resource } from '../../core/resource.ts'
import { directionWord } from './rule-options.ts'

const endpointsText = (endpoints: FirewallEndpoint[]) =>
  endpoints.map((endpoint) => endpoint.cidr || endpoint.resource_id).join(',')

export const firewallRules: Resource<FirewallRule> = {
  noun: 'firewall',
  title: 'firewall rule',
  example: 'allow-jupyter',
  otherExample: 'no-mail',
  columns: [
    { name: 'name', value: (rule) => rule.name },
    { name: 'action', value: (rule) => rule.action },
    { name: 'direction', value: (rule) => directionWord[rule.direction] },
    { name: 'protocols', value: (rule) => rule.protocols.join(',') },
    { name: 'ports', value: (rule) => rule.destination_ports.join(',') || 'all' },
    { name: 'from', value: (rule) => endpointsText(rule.sources) },
    { name: 'to', value: (rule) => endpointsText(rule.destinations), hideOrder: 1 },
    { name: 'state', value: (rule) => rule.state, isState: true, hideOrder: 2 },
    idColumn,
    labelsColumn,
  ],
  route: 'firewallRuleList',
  list: async (cli) => cli.client.collect('firewallRuleList', { project_id: await cli.project() }),
  named: ownName,
  fields: (rule) => [
    ['Name', rule.name],
    ['Id', rule.id],
    ['State', rule.state],
    ['Rule', `${rule.action} ${directionWord[rule.direction]}`],
    ['Protocols', rule.protocols.join(', ')],
    ['From', endpointsText(rule.sources)],
    ['Source ports', rule.source_ports.join(', ') || 'all'],
    ['To', endpointsText(rule.destinations)],
    ['Destination ports', rule.destination_ports.join(', ') || 'all'],
    ['Network', rule.vpc_network_id],
    ['Labels', labelsText(rule.labels) || '-'],
  ],
}
