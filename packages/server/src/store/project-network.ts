import { statement, type Tx } from './database.ts'

const locationNames = statement<{ name: string }>(
  'project_network_locations',
  'SELECT name FROM locations ORDER BY position, name',
)

const insertNetwork = statement<never, [string, string, string, string]>(
  'project_network_insert',
  'INSERT INTO networks (id, project_id, name, cidr) VALUES ($1, $2, $3, $4)',
)

const insertSubnet = statement<never, [string, string, string, string, string, string]>(
  'project_subnet_insert',
  'INSERT INTO subnets (id, project_id, network_id, name, cidr, location) VALUES ($1, $2, $3, $4, $5, $6)',
)

// In force at once: no VM can be in the network yet.
const insertRule = statement<
  never,
  [string, string, string, string, 'ingress' | 'egress', string, string, string[], string[]]
>(
  'project_rule_insert',
  `INSERT INTO firewall_rules (id, project_id, network_id, name, direction, action, state,
                               sources, source_ports, destinations, destination_ports, protocols)
   VALUES ($1, $2, $3, $4, $5, 'allow', 'active', $6, '{}', $7, $8, $9)`,
)

const countRules = statement<never, [string]>(
  'project_rules_count',
  `UPDATE quotas SET used = (SELECT count(*) FROM firewall_rules WHERE project_id = $1)
   WHERE project_id = $1 AND name = 'firewall_rules'`,
)

export const locationsInOrder = async (tx: Tx) => (await locationNames.all(tx)).map((row) => row.name)

export interface DefaultNetwork {
  id: string
  projectId: string
  name: string
  cidr: string
}

export const insertDefaultNetwork = (tx: Tx, network: DefaultNetwork) =>
  insertNetwork.run(tx, network.id, network.projectId, network.name, network.cidr)

export interface DefaultSubnet {
  id: string
  name: string
  cidr: string
  location: string
}

export const insertDefaultSubnet = (tx: Tx, network: DefaultNetwork, subnet: DefaultSubnet) =>
  insertSubnet.run(tx, subnet.id, network.projectId, network.id, subnet.name, subnet.cidr, subnet.location)

export interface DefaultRule {
  id: string
  name: string
  direction: 'ingress' | 'egress'
  sources: { resource_id: string; cidr: string }[]
  destinations: { resource_id: string; cidr: string }[]
  destinationPorts: string[]
  protocols: string[]
}

export const insertDefaultRule = (tx: Tx, network: DefaultNetwork, rule: DefaultRule) =>
  insertRule.run(
    tx,
    rule.id,
    network.projectId,
    network.id,
    rule.name,
    rule.direction,
    JSON.stringify(rule.sources),
    JSON.stringify(rule.destinations),
    rule.destinationPorts,
    rule.protocols,
  )

/** Default rules count like any other. */
export const countDefaultRules = (tx: Tx, projectId: string) => countRules.run(tx, projectId)
