import type { FirewallEndpoint, FirewallRule, Network, RuleState, Subnet } from '@slipway/contract'
import { gatewayOf } from '../../domain/addresses.ts'
import { type Queryable, statement, type Tx } from '../database.ts'
import { time } from '../time.ts'

export interface NetworkRow {
  id: string
  name: string
  cidr: string
  created_at: Date
  subnets: string[]
}

export interface SubnetRow {
  id: string
  network_id: string
  name: string
  cidr: string
  location: string
  created_at: Date
}

export interface RuleRow {
  id: string
  project_id: string
  network_id: string
  name: string
  direction: 'ingress' | 'egress'
  action: 'allow' | 'deny'
  state: RuleState
  sources: FirewallEndpoint[]
  source_ports: string[]
  destinations: FirewallEndpoint[]
  destination_ports: string[]
  protocols: ('tcp' | 'udp' | 'icmp')[]
  generation: number
}

const selectNetwork = `
  SELECT n.id, n.name, n.cidr::text AS cidr, n.created_at,
         ARRAY(SELECT s.id::text FROM subnets s WHERE s.network_id = n.id ORDER BY s.id) AS subnets
  FROM networks n`
const selectSubnet = 'SELECT id, network_id, name, cidr::text AS cidr, location, created_at FROM subnets'

const networkById = statement<NetworkRow, [string, string]>(
  'network_by_id',
  `${selectNetwork} WHERE n.project_id = $1 AND n.id = $2`,
)
const networkList = statement<NetworkRow, [string, string | null, number]>(
  'network_list',
  `${selectNetwork} WHERE n.project_id = $1 AND ($2::uuid IS NULL OR n.id < $2) ORDER BY n.id DESC LIMIT $3`,
)
const networkInsert = statement<never, [string, string, string, string]>(
  'network_insert',
  'INSERT INTO networks (id, project_id, name, cidr) VALUES ($1, $2, $3, $4)',
)
const networkDelete = statement<never, [string]>('network_delete', 'DELETE FROM networks WHERE id = $1')
const networkLock = statement<{ id: string }, [string, string]>(
  'network_lock',
  'SELECT id FROM networks WHERE project_id = $1 AND id = $2 FOR UPDATE',
)
const networkRules = statement<{ count: number }, [string]>(
  'network_rules',
  'SELECT count(*) AS count FROM firewall_rules WHERE network_id = $1',
)

const subnetById = statement<SubnetRow, [string, string]>(
  'subnet_by_id',
  `${selectSubnet} WHERE project_id = $1 AND id = $2`,
)
const subnetList = statement<SubnetRow, [string, string | null, number]>(
  'subnet_list',
  `${selectSubnet} WHERE project_id = $1 AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3`,
)
const subnetInsert = statement<never, [string, string, string, string, string, string]>(
  'subnet_insert',
  'INSERT INTO subnets (id, project_id, network_id, name, cidr, location) VALUES ($1, $2, $3, $4, $5, $6)',
)
const subnetDelete = statement<never, [string]>('subnet_delete', 'DELETE FROM subnets WHERE id = $1')
const subnetLock = statement<{ id: string }, [string, string]>(
  'subnet_lock',
  'SELECT id FROM subnets WHERE project_id = $1 AND id = $2 FOR UPDATE',
)
const subnetVms = statement<{ count: number }, [string]>(
  'subnet_vms',
  'SELECT count(*) AS count FROM vms WHERE subnet_id = $1',
)
// The oldest network's subnet first: that is the default one until somebody removes it.
const subnetFor = statement<SubnetRow & { network_cidr: string }, [string, string, string | null]>(
  'subnet_for_vm',
  `SELECT s.id, s.network_id, s.name, s.cidr::text AS cidr, s.location, s.created_at, n.cidr::text AS network_cidr
   FROM subnets s JOIN networks n ON n.id = s.network_id
   WHERE s.project_id = $1 AND CASE WHEN $3::uuid IS NULL THEN s.location = $2 ELSE s.id = $3 END
   ORDER BY n.name = 'default-vpc-network' DESC, s.id LIMIT 1 FOR SHARE OF s`,
)

const ruleById = statement<RuleRow, [string, string]>(
  'rule_by_id',
  'SELECT * FROM firewall_rules WHERE project_id = $1 AND id = $2',
)
const ruleLock = statement<RuleRow, [string, string]>(
  'rule_lock',
  'SELECT * FROM firewall_rules WHERE project_id = $1 AND id = $2 FOR UPDATE',
)
const ruleList = statement<RuleRow, [string, string | null, number]>(
  'rule_list',
  `SELECT * FROM firewall_rules WHERE project_id = $1 AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3`,
)
const ruleInsert = statement<
  never,
  [string, string, string, string, string, string, string, string, string[], string, string[], string[]]
>(
  'rule_insert',
  `INSERT INTO firewall_rules (id, project_id, network_id, name, direction, action, state, sources, source_ports,
     destinations, destination_ports, protocols)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
)
const ruleWrite = statement<never, [string, string, string, string, string[], string, string[], string[]]>(
  'rule_write',
  `UPDATE firewall_rules SET name = $2, state = $3, sources = $4, source_ports = $5, destinations = $6,
          destination_ports = $7, protocols = $8 WHERE id = $1`,
)
const ruleMove = statement<{ id: string }, [string, string, string[]]>(
  'rule_move',
  'UPDATE firewall_rules SET state = $2 WHERE id = $1 AND state = ANY ($3) RETURNING id',
)
const ruleRaise = statement<{ generation: number }, [string]>(
  'rule_raise_generation',
  'UPDATE firewall_rules SET generation = generation + 1 WHERE id = $1 RETURNING generation',
)
const ruleDelete = statement<never, [string]>('rule_delete', 'DELETE FROM firewall_rules WHERE id = $1')

const resourceExists = statement<{ exists: boolean }, [string, string]>(
  'firewall_resource_exists',
  `SELECT EXISTS (SELECT FROM vms WHERE project_id = $1 AND id = $2 AND deleted_at IS NULL)
       OR EXISTS (SELECT FROM subnets WHERE project_id = $1 AND id = $2)
       OR EXISTS (SELECT FROM networks WHERE project_id = $1 AND id = $2) AS exists`,
)

/** A VM, subnet or network of the project. */
export const isFirewallResource = async (db: Queryable, projectId: string, id: string): Promise<boolean> =>
  (await resourceExists.one(db, projectId, id))!.exists

export const findNetwork = (db: Queryable, projectId: string, id: string) =>
  networkById.one(db, projectId, id)
export const listNetworks = (db: Queryable, projectId: string, beforeId: string | null, limit: number) =>
  networkList.all(db, projectId, beforeId, limit)
export const insertNetwork = (tx: Tx, id: string, projectId: string, name: string, cidr: string) =>
  networkInsert.run(tx, id, projectId, name, cidr)
export const lockNetwork = (tx: Tx, projectId: string, id: string) => networkLock.one(tx, projectId, id)
export const deleteNetworkRow = (tx: Tx, id: string) => networkDelete.run(tx, id)
export const countNetworkRules = async (db: Queryable, id: string) =>
  (await networkRules.one(db, id))?.count ?? 0

export const findSubnet = (db: Queryable, projectId: string, id: string) => subnetById.one(db, projectId, id)
export const listSubnets = (db: Queryable, projectId: string, beforeId: string | null, limit: number) =>
  subnetList.all(db, projectId, beforeId, limit)
export const insertSubnet = (
  tx: Tx,
  s: { id: string; projectId: string; networkId: string; name: string; cidr: string; location: string },
) => subnetInsert.run(tx, s.id, s.projectId, s.networkId, s.name, s.cidr, s.location)
export const lockSubnet = (tx: Tx, projectId: string, id: string) => subnetLock.one(tx, projectId, id)
export const deleteSubnetRow = (tx: Tx, id: string) => subnetDelete.run(tx, id)
export const countSubnetVms = async (db: Queryable, id: string) => (await subnetVms.one(db, id))?.count ?? 0
/** The given subnet, or the project's default one at the location; held against deletion. */
export const findSubnetFor = (tx: Tx, projectId: string, location: string, subnetId: string | null) =>
  subnetFor.one(tx, projectId, location, subnetId)

export const findRule = (db: Queryable, projectId: string, id: string) => ruleById.one(db, projectId, id)
export const lockRule = (tx: Tx, projectId: string, id: string) => ruleLock.one(tx, projectId, id)
export const listRules = (db: Queryable, projectId: string, beforeId: string | null, limit: number) =>
  ruleList.all(db, projectId, beforeId, limit)

export interface NewRule {
  id: string
  projectId: string
  networkId: string
  name: string
  direction: string
  action: string
  state: RuleState
  sources: FirewallEndpoint[]
  sourcePorts: string[]
  destinations: FirewallEndpoint[]
  destinationPorts: string[]
  protocols: string[]
}

export const insertRule = (tx: Tx, r: NewRule) =>
  ruleInsert.run(
    tx,
    r.id,
    r.projectId,
    r.networkId,
    r.name,
    r.direction,
    r.action,
    r.state,
    JSON.stringify(r.sources),
    r.sourcePorts,
    JSON.stringify(r.destinations),
    r.destinationPorts,
    r.protocols,
  )

type RuleContent = Pick<
  RuleRow,
  'id' | 'name' | 'state' | 'sources' | 'source_ports' | 'destinations' | 'destination_ports' | 'protocols'
>

export const writeRule = (tx: Tx, r: RuleContent) =>
  ruleWrite.run(
    tx,
    r.id,
    r.name,
    r.state,
    JSON.stringify(r.sources),
    r.source_ports,
    JSON.stringify(r.destinations),
    r.destination_ports,
    r.protocols,
  )

export async function moveRule(tx: Tx, id: string, to: RuleState, from: RuleState[]): Promise<boolean> {
  return (await ruleMove.one(tx, id, to, from)) !== undefined
}
export async function raiseRuleGeneration(tx: Tx, id: string): Promise<number> {
  return (await ruleRaise.one(tx, id))!.generation
}
export const deleteRuleRow = (tx: Tx, id: string) => ruleDelete.run(tx, id)

export const networkRecord = (n: NetworkRow): Network => ({
  id: n.id,
  name: n.name,
  cidr: n.cidr,
  gateway: gatewayOf(n.cidr),
  subnets: n.subnets,
  created_at: time(n.created_at),
})

export const subnetRecord = (s: SubnetRow): Subnet => ({
  id: s.id,
  name: s.name,
  cidr: s.cidr,
  vpc_network_id: s.network_id,
  location: s.location,
  created_at: time(s.created_at),
})

export const ruleRecord = (r: RuleRow): FirewallRule => ({
  id: r.id,
  name: r.name,
  direction: r.direction,
  action: r.action,
  vpc_network_id: r.network_id,
  state: r.state,
  sources: r.sources,
  source_ports: r.source_ports,
  destinations: r.destinations,
  destination_ports: r.destination_ports,
  protocols: r.protocols,
})
