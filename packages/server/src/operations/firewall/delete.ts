import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, type Outcome, type Work } from '../../runner/operation.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import type { Requester } from '../../store/events/events.ts'
import { wantFirewalls } from '../../store/network/firewalls.ts'
import { findRule, moveRule, type RuleRow, raiseRuleGeneration } from '../../store/network/rules.ts'
import { awaitCancelled, beginOperation, makeWayForDeletion, type ProjectRequester } from '../admission.ts'
import { applyToNetwork, emitRule, forgetRule, ruleOf } from './rule.ts'

export async function admitFirewallRuleDelete(
  tx: Tx,
  by: ProjectRequester,
  rule: RuleRow,
): Promise<BegunOperation> {
  const underWay = await makeWayForDeletion(tx, firewallRuleDelete, by, rule.id)
  if (underWay) return underWay
  await moveRule(tx, rule.id, 'deleting', ['creating', 'active', 'updating'])
  await wantFirewalls(tx, rule.network_id)
  return beginOperation(tx, by, firewallRuleDelete, {
    resourceId: rule.id,
    location: '',
    generation: await raiseRuleGeneration(tx, rule.id),
    request: {},
    eventType: 'firewall_rule.deleting',
    eventData: { name: rule.name },
  })
}

export const firewallRuleDelete: Definition = {
  kind: 'firewall-rule-delete',
  name: 'DELETE',
  resourceType: 'firewall_rule',
  deadlineS: 300,
  isTeardown: true,
  steps: [
    { name: 'settle', call: awaitCancelled },
    { name: 'apply', call: applyToNetwork },
    { name: 'release', tx: release },
  ],
  onAbandon: forgetAbandoned,
}

/** Gone for its tenant; the VMs of its network go on catching up. */
async function forgetAbandoned(tx: Tx, _by: Requester, { project_id, resource_id }: OperationRow) {
  const rule = await findRule(tx, project_id, resource_id)
  if (rule) await forgetRule(tx, rule)
}

/** A rule that is being deleted is compiled for nobody: with the step before, it is in force nowhere. */
async function release(work: Work, tx: Tx): Promise<Outcome> {
  const rule = await ruleOf(work, tx)
  await forgetRule(tx, rule)
  await emitRule(tx, work, rule, 'firewall_rule.deleted')
  return done(null)
}
