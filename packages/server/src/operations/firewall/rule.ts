import { Failure } from '../../domain/failure.ts'
import { done, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import { giveBackQuota } from '../../store/compute/quotas.ts'
import { type Queryable, type Tx, violatedConstraint } from '../../store/database.ts'
import { emit } from '../../store/events/events.ts'
import { wantFirewalls } from '../../store/network/firewalls.ts'
import { deleteRuleRow, findRule, moveRule, type RuleRow, ruleView } from '../../store/network/rules.ts'
import { applyFirewalls } from './apply.ts'

const lookAgainMs = 500

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

export async function ruleOf(work: Work, db: Queryable = work.services.database): Promise<RuleRow> {
  const rule = await findRule(db, work.operation.project_id, work.operation.resource_id)
  if (!rule) throw new Failure('not_found', 'The firewall rule is gone.')
  return rule
}

/** In force nowhere any more once the VMs of its network have caught up. */
export async function forgetRule(work: Work, tx: Tx): Promise<void> {
  await forgetRuleRow(tx, await ruleOf(work, tx))
}

export async function forgetRuleRow(tx: Tx, rule: RuleRow): Promise<void> {
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
  await emitRule(tx, work, rule, 'firewall_rule.active')
  return done(ruleView(await ruleOf(work, tx)))
}

export const emitRule = (tx: Tx, work: Work, rule: RuleRow, type: string): Promise<void> =>
  emit(tx, {
    type,
    resourceType: 'firewall_rule',
    resourceId: rule.id,
    projectId: rule.project_id,
    actor: work.operation.actor,
    requestId: work.operation.request_id,
    data: { name: rule.name, operation_id: work.operation.id },
  })
