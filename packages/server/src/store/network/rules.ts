import type { FirewallEndpoint, FirewallRule, RuleState } from '@slipway/contract'
import { type Queryable, statement, type Tx } from '../database.ts'

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

export const ruleView = (r: RuleRow): FirewallRule => ({
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
