import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, type Outcome, type Work } from '../../runner/operation.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import type { Requester } from '../../store/events/events.ts'
import { markFirewallsOutdated } from '../../store/network/firewalls.ts'
import { findRule, type RuleRow, raiseRuleGeneration, setRuleState } from '../../store/network/rules.ts'
import {
  beginOperation,
  cancelForDeletion,
  type ProjectRequester,
  waitForCancelledOperations,
} from '../admission.ts'
import { emitResource } from '../engine-work.ts'
import { applyToNetwork, forgetRule, ruleOf } from './rule.ts'

export async function admitFirewallRuleDelete(
  tx: Tx,
  by: ProjectRequester,
  rule: RuleRow,
): Promise<BegunOperation> {
  const deletion = await cancelForDeletion(tx, firewallRuleDelete, by, rule.id)
  if (deletion) return deletion
  await setRuleState(tx, rule.id, 'deleting', ['creating', 'active', 'updating'])
  await markFirewallsOutdated(tx, rule.network_id)
  return beginOperation(tx, by, firewallRuleDelete, {
    resource: { id: rule.id, name: rule.name },
    generation: await raiseRuleGeneration(tx, rule.id),
    eventType: 'firewall_rule.deleting',
  })
}

export const firewallRuleDelete: Definition = {
  kind: 'firewall-rule-delete',
  name: 'DELETE',
  resourceType: 'firewall_rule',
  deadlineS: 300,
  isRetriedNotUndone: true,
  steps: [
    { name: 'wait_for_cancelled', call: waitForCancelledOperations },
    { name: 'apply', call: applyToNetwork },
    { name: 'release', tx: release },
  ],
  onAbandon: forgetAbandoned,
}

/** Deletes the rule of an abandoned deletion. The reconciler then removes the rule from the VMs of the network. */
async function forgetAbandoned(tx: Tx, _by: Requester, { project_id, resource_id }: OperationRow) {
  const rule = await findRule(tx, project_id, resource_id)
  if (rule) await forgetRule(tx, rule)
}

/** A rule that is being deleted is not compiled, so no VM enforces it after the previous step. */
async function release(work: Work, tx: Tx): Promise<Outcome> {
  const rule = await ruleOf(work, tx)
  await forgetRule(tx, rule)
  await emitResource(tx, work, rule, 'firewall_rule.deleted')
  return done(null)
}
