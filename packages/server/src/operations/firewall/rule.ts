import type { EventType } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import { type Queryable, type Tx, violatedConstraint } from '../../postgres/database.ts'
import { done, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import { giveBackQuota } from '../../store/compute/quotas.ts'
import { emit } from '../../store/events/events.ts'
import { isNetworkBehind, listNetworkLocations } from '../../store/network/firewall-queue.ts'
import { deleteRuleRow, findRule, findRuleView, moveRule, type RuleRow } from '../../store/network/rules.ts'
import { applyDue } from './apply.ts'

const lookAgainMs = 500
/** A large network is brought up to date in several turns, each well inside a step's time limit. */
const longestTurnMs = 20_000

export async function nameOrConflict<T>(name: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    switch (violatedConstraint(error)) {
      case 'firewall_rules_project_id_name_key':
        throw new Failure(
          'already_exists',
          `There is already a firewall rule called ${name}: choose another name.`,
        )
      case 'firewall_rule_names_pkey':
        throw new Failure(
          'already_exists',
          `A firewall rule called ${name} is being renamed, and gets its name back if that fails: choose another name, or wait for its operation to end.`,
        )
      default:
        throw error
    }
  }
}

export async function ruleOf(work: Work, db: Queryable = work.services.database): Promise<RuleRow> {
  const rule = await findRule(db, work.operation.project_id, work.operation.resource_id)
  if (!rule) throw new Failure('not_found', 'The firewall rule is gone.')
  return rule
}

export async function forgetRule(tx: Tx, rule: RuleRow): Promise<void> {
  await deleteRuleRow(tx, rule.id)
  await giveBackQuota(tx, rule.project_id, { firewall_rules: 1 })
}

/**
 * Done when every VM of the network that can be reached has it. Each location goes its own way, so that an engine that
 * hangs keeps nothing from the others; one that this process does not serve is another's work, and waited for.
 */
export async function applyToNetwork(work: Work): Promise<Outcome> {
  const { services, signal } = work
  const { network_id: networkId, project_id: projectId } = await ruleOf(work)
  const isOver = AbortSignal.any([signal, AbortSignal.timeout(longestTurnMs)])
  const locations = await listNetworkLocations(services.database, networkId)
  await Promise.all(
    locations.map(async (location) => {
      if (!services.engines.has(location)) return
      while (!isOver.aborted && (await applyDue(services, { location, projectId, networkId }, signal)) > 0);
    }),
  )
  const isBehind = await isNetworkBehind(services.database, { id: networkId, projectId })
  return isBehind ? wait(isOver.aborted ? 0 : lookAgainMs) : next()
}

/** Also the end of a change. */
export async function activate(work: Work, tx: Tx): Promise<Outcome> {
  const rule = await ruleOf(work, tx)
  if (!(await moveRule(tx, rule.id, 'active', ['creating', 'updating'])))
    throw new Failure('conflict', `The firewall rule went to ${rule.state} meanwhile.`)
  await emitRule(tx, work, rule, 'firewall_rule.active')
  return done((await findRuleView(tx, rule.project_id, rule.id))!)
}

export const emitRule = (tx: Tx, work: Work, rule: RuleRow, type: EventType): Promise<void> =>
  emit(tx, {
    type,
    resourceType: 'firewall_rule',
    resourceId: rule.id,
    projectId: rule.project_id,
    actor: work.operation.actor,
    requestId: work.operation.request_id,
    data: { name: rule.name, labels: rule.labels, operation_id: work.operation.id },
  })
