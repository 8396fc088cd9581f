import type { FirewallRuleCreate } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { type Definition, done, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import type { OperationRow } from '../../store/compute/operations.ts'
import { giveBackQuota } from '../../store/compute/quotas.ts'
import { type Queryable, type Tx, violatedConstraint } from '../../store/database.ts'
import { emit } from '../../store/events/events.ts'
import { wantFirewalls } from '../../store/network/firewalls.ts'
import { lockNetwork } from '../../store/network/networks.ts'
import {
  deleteRuleRow,
  findRule,
  insertRule,
  moveRule,
  type RuleRow,
  ruleView,
} from '../../store/network/rules.ts'
import { beginOperation, type ProjectRequester, requireQuota } from '../admission.ts'
import { applyFirewalls } from './apply.ts'
import { checkEndpoints, checkPorts } from './checks.ts'

const lookAgainMs = 500

export async function admitFirewallRuleCreate(
  tx: Tx,
  by: ProjectRequester,
  body: FirewallRuleCreate,
): Promise<OperationRow> {
  if (!(await lockNetwork(tx, by.projectId, body.vpc_network_id)))
    throw invalidField('vpc_network_id', 'is not a network of this project')
  checkPorts(body)
  const sources = await checkEndpoints(tx, by.projectId, 'sources', body.sources)
  const destinations = await checkEndpoints(tx, by.projectId, 'destinations', body.destinations)
  const id = uuid()
  await nameOrConflict(body.name, () =>
    insertRule(tx, {
      id,
      projectId: by.projectId,
      networkId: body.vpc_network_id,
      name: body.name,
      direction: body.direction,
      action: body.action,
      state: 'creating',
      sources,
      sourcePorts: body.source_ports ?? [],
      destinations,
      destinationPorts: body.destination_ports ?? [],
      protocols: body.protocols,
    }),
  )
  await wantFirewalls(tx, body.vpc_network_id)
  const operation = await beginOperation(tx, by, firewallRuleCreate, {
    resourceId: id,
    generation: 1,
    request: echo(body),
    eventType: 'firewall_rule.creating',
    eventData: { name: body.name },
  })
  await requireQuota(tx, by.projectId, { firewall_rules: 1 })
  return operation
}

/** In the request echo these two appear in their long forms. */
const echo = (body: FirewallRuleCreate) => ({
  ...body,
  direction: `DIRECTION_${body.direction.toUpperCase()}`,
  action: `ACTION_${body.action.toUpperCase()}`,
})

export async function nameOrConflict<T>(name: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (violatedConstraint(error) === 'firewall_rules_project_id_name_key')
      throw new Failure(
        'already_exists',
        `There is already a firewall rule called ${name}: choose another name.`,
      )
    throw error
  }
}

export const firewallRuleCreate: Definition = {
  kind: 'firewall-rule-create',
  name: 'CREATE',
  resourceType: 'firewall_rule',
  deadlineS: 300,
  steps: [
    { name: 'admit', undoTx: forgetRule },
    { name: 'apply', call: applyToNetwork },
    { name: 'finish', tx: activate },
  ],
}

export async function ruleOf(work: Work, db: Queryable = work.services.database): Promise<RuleRow> {
  const rule = await findRule(db, work.operation.project_id, work.operation.resource_id)
  if (!rule) throw new Failure('not_found', 'The firewall rule is gone.')
  return rule
}

/** In force nowhere any more once the VMs of its network have caught up. */
export async function forgetRule(work: Work, tx: Tx): Promise<void> {
  const rule = await ruleOf(work, tx)
  await deleteRuleRow(tx, rule.id)
  await wantFirewalls(tx, rule.network_id)
  await giveBackQuota(tx, rule.project_id, { firewall_rules: 1 })
}

/** Done when every VM of the network that can be reached has it. */
export async function applyToNetwork(work: Work): Promise<Outcome> {
  const rule = await ruleOf(work)
  const behind = await applyFirewalls(work.services, rule.network_id, work.signal)
  return behind > 0 ? wait(lookAgainMs) : next()
}

/** Also the end of a change. */
export async function activate(work: Work, tx: Tx): Promise<Outcome> {
  const rule = await ruleOf(work, tx)
  if (!(await moveRule(tx, rule.id, 'active', ['creating', 'updating'])))
    throw new Failure('conflict', `The firewall rule went to ${rule.state} meanwhile.`)
  await tellOfRule(tx, work, rule, 'firewall_rule.active')
  return done(ruleView(await ruleOf(work, tx)))
}

export const tellOfRule = (tx: Tx, work: Work, rule: RuleRow, type: string): Promise<void> =>
  emit(tx, {
    type,
    resourceType: 'firewall_rule',
    resourceId: rule.id,
    projectId: rule.project_id,
    actor: work.operation.actor,
    requestId: work.operation.request_id,
    data: { name: rule.name, operation_id: work.operation.id },
  })
