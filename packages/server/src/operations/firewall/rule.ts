import { Failure, nameTaken } from '../../domain/failure.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { done, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import { releaseQuota } from '../../store/compute/quotas.ts'
import { isNetworkOutdated, listNetworkLocations } from '../../store/network/firewall-queue.ts'
import {
  deleteRuleRow,
  findRule,
  findRuleView,
  type RuleRow,
  setRuleState,
} from '../../store/network/rules.ts'
import { writeOrRefuse } from '../conflicts.ts'
import { emitResource } from '../engine-work.ts'
import { applyDue } from './apply.ts'

const pollMs = 500
/**
 * A large network is brought up to date in several runs of the step, each well within a step's time limit.
 */
const longestRunMs = 20_000

/**
 * Runs a write. Throws a 409 if another rule of the project has this name, or would get it back if its renaming were
 * undone.
 */
export const writeUniqueRuleName = <T>(name: string, write: () => Promise<T>): Promise<T> =>
  writeOrRefuse(
    {
      firewall_rules_project_id_name_key: nameTaken('firewall rule', name),
      firewall_rule_names_pkey: new Failure(
        'already_exists',
        `A firewall rule named ${name} is being renamed, and keeps this name if the renaming fails. Choose another name, or wait until its operation has finished.`,
      ),
    },
    write,
  )

export async function ruleOf(work: Work, db: Queryable = work.services.database): Promise<RuleRow> {
  const rule = await findRule(db, work.operation.project_id, work.operation.resource_id)
  if (!rule) throw new Failure('not_found', 'The firewall rule no longer exists.')
  return rule
}

export async function forgetRule(tx: Tx, rule: RuleRow): Promise<void> {
  await deleteRuleRow(tx, rule.id)
  await releaseQuota(tx, rule.project_id, { firewall_rules: 1 })
}

/**
 * Waits until every reachable VM of the network enforces the network's rules. Locations are independent, so an engine
 * that hangs does not delay the others. Another process applies the rules in locations that this process
 * does not serve.
 */
export async function applyToNetwork(work: Work): Promise<Outcome> {
  const { services, signal } = work
  const { network_id: networkId, project_id: projectId } = await ruleOf(work)
  const stop = AbortSignal.any([signal, AbortSignal.timeout(longestRunMs)])
  const locations = await listNetworkLocations(services.database, networkId)
  await Promise.all(
    locations.map(async (location) => {
      if (!services.engines.has(location)) return
      while (!stop.aborted && (await applyDue(services, { location, projectId, networkId }, signal)) > 0);
    }),
  )
  const isOutdated = await isNetworkOutdated(services.database, { id: networkId, projectId })
  return isOutdated ? wait(stop.aborted ? 0 : pollMs) : next()
}

/** The last step of a creation or an update. */
export async function activate(work: Work, tx: Tx): Promise<Outcome> {
  const rule = await ruleOf(work, tx)
  if (!(await setRuleState(tx, rule.id, 'active', ['creating', 'updating'])))
    throw new Failure('conflict', `The firewall rule changed to ${rule.state} in the meantime.`)
  await emitResource(tx, work, rule, 'firewall_rule.active')
  return done((await findRuleView(tx, rule.project_id, rule.id))!)
}
