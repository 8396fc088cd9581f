import type { FirewallEndpoint, FirewallRule, LabelSelector, Labels, RuleState } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { JsonText, json, jsonSql, object, plain, text } from '../../postgres/json.ts'
import { keyedStatement } from '../../postgres/keyed.ts'
import { fitsLabels, type LabelParams, labelParams } from '../../postgres/labels.ts'
import { isBefore, type RecordPageParams, statement, untilPageIsFull } from '../../postgres/statement.ts'

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
  labels: Labels
}

export const findRule = statement<RuleRow, { projectId: string; id: string }>(
  'rule_by_id',
  'SELECT * FROM firewall_rules WHERE project_id = :projectId AND id = :id',
).oneBy('projectId', 'id')

export const lockRule = statement<RuleRow, { projectId: string; id: string }, Tx>(
  'rule_lock',
  'SELECT * FROM firewall_rules WHERE project_id = :projectId AND id = :id FOR UPDATE',
).oneBy('projectId', 'id')

/** The rule that clients see, as SQL on a row `r` of firewall_rules. */
const ruleRecord = jsonSql(
  object<FirewallRule>({
    id: plain('r.id'),
    name: text('r.name'),
    direction: text('r.direction'),
    action: text('r.action'),
    vpc_network_id: plain('r.network_id'),
    state: text('r.state'),
    sources: json('r.sources'),
    source_ports: json('to_json(r.source_ports)'),
    destinations: json('r.destinations'),
    destination_ports: json('to_json(r.destination_ports)'),
    protocols: json('to_json(r.protocols)'),
    labels: json('r.labels'),
  }),
)

const recordById = keyedStatement<{ record: string }, { projectId: string; id: string }>(
  'rule_record',
  `SELECT r.project_id AS "projectId", r.id, ${ruleRecord} AS record FROM firewall_rules r
   WHERE r.id = ANY (:id::uuid[])`,
)

const recordList = statement<
  { id: string; record: string },
  { projectId: string } & RecordPageParams & LabelParams
>(
  'rule_list',
  untilPageIsFull(
    'id',
    `SELECT r.id, ${ruleRecord} AS record FROM firewall_rules r
     WHERE r.project_id = :projectId AND ${isBefore('r.id')} AND ${fitsLabels('r.labels')}
     ORDER BY r.id DESC LIMIT :limit`,
  ),
)

// These columns are jsonb, so their values are sent as JSON text: the driver would send a JavaScript array as a
// PostgreSQL array.
type RuleParams<Rule> = Omit<Rule, 'sources' | 'destinations'> & { sources: string; destinations: string }

const ruleInsert = statement<never, RuleParams<NewRule>>(
  'rule_insert',
  `INSERT INTO firewall_rules (id, project_id, network_id, name, direction, action, state, sources, source_ports,
     destinations, destination_ports, protocols, labels)
   VALUES (:id, :projectId, :networkId, :name, :direction, :action, :state, :sources, :sourcePorts,
     :destinations, :destinationPorts, :protocols, :labels)`,
)

const ruleWrite = statement<never, RuleParams<RuleContent>>(
  'rule_write',
  `UPDATE firewall_rules SET name = :name, state = :state, sources = :sources, source_ports = :source_ports,
          destinations = :destinations, destination_ports = :destination_ports, protocols = :protocols,
          labels = :labels
   WHERE id = :id`,
)

const ruleMove = statement<{ id: string }, { id: string; to: string; from: string[] }>(
  'rule_move',
  'UPDATE firewall_rules SET state = :to WHERE id = :id AND state = ANY (:from) RETURNING id',
)

const ruleRaise = statement<{ generation: number }, { id: string }>(
  'rule_raise_generation',
  'UPDATE firewall_rules SET generation = generation + 1 WHERE id = :id RETURNING generation',
)

export const deleteRuleRow = statement<never, { id: string }, Tx>(
  'rule_delete',
  'DELETE FROM firewall_rules WHERE id = :id',
).runBy('id')

const resourceExists = statement<{ exists: boolean }, { projectId: string; id: string }>(
  'firewall_resource_exists',
  `SELECT EXISTS (SELECT FROM vms WHERE project_id = :projectId AND id = :id AND deleted_at IS NULL)
       OR EXISTS (SELECT FROM subnets WHERE project_id = :projectId AND id = :id)
       OR EXISTS (SELECT FROM networks WHERE project_id = :projectId AND id = :id) AS exists`,
)

/** Returns whether the id belongs to a VM, subnet or network of the project. */
export const isFirewallResource = async (db: Queryable, projectId: string, id: string): Promise<boolean> =>
  (await resourceExists.one(db, { projectId, id }))!.exists

export async function findRuleView(
  db: Queryable,
  projectId: string,
  id: string,
): Promise<JsonText<FirewallRule> | undefined> {
  const row = await recordById.one(db, { projectId, id })
  return row && new JsonText(row.record)
}

export const listRuleViews = (
  db: Queryable,
  { labels, ...filter }: { projectId: string; labels: LabelSelector | null } & RecordPageParams,
) => recordList.all(db, { ...filter, ...labelParams(labels) })

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
  labels: Labels
}

const paramsOf = <Rule extends Pick<RuleRow, 'sources' | 'destinations'>>(rule: Rule): RuleParams<Rule> => ({
  ...rule,
  sources: JSON.stringify(rule.sources),
  destinations: JSON.stringify(rule.destinations),
})

export const insertRule = (tx: Tx, r: NewRule) => ruleInsert.run(tx, paramsOf(r))

type RuleContent = Omit<RuleRow, 'project_id' | 'network_id' | 'direction' | 'action' | 'generation'>

export const writeRule = (tx: Tx, r: RuleContent) => ruleWrite.run(tx, paramsOf(r))

export async function setRuleState(tx: Tx, id: string, to: RuleState, from: RuleState[]): Promise<boolean> {
  return (await ruleMove.one(tx, { id, to, from })) !== undefined
}

export async function raiseRuleGeneration(tx: Tx, id: string): Promise<number> {
  return (await ruleRaise.one(tx, { id }))!.generation
}
