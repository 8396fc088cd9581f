import type { Tx } from '../store/database.ts'
import { wantFirewalls } from '../store/firewalls.ts'
import { moveRule, type RuleRow, raiseRuleGeneration } from '../store/networks.ts'
import type { OperationRow } from '../store/operations.ts'
import { beginOperation, makeWayForDeletion, type Requester, settle } from './admission.ts'
import { applyToNetwork, forgetRule, ruleOf, tellOfRule } from './firewall-rule-create.ts'
import { type Definition, done, type Outcome, type Work } from './operation.ts'

export async function admitFirewallRuleDelete(tx: Tx, by: Requester, rule: RuleRow): Promise<OperationRow> {
  const underWay = await makeWayForDeletion(tx, by, rule.id)
  if (underWay) {
    await by.audit({
      type: 'firewall_rule.deletion_repeated',
      resourceType: 'firewall_rule',
      resourceId: rule.id,
      data: { operation_id: underWay.id },
    })
    return underWay
  }
  await moveRule(tx, rule.id, 'deleting', ['creating', 'active', 'updating'])
  await wantFirewalls(tx, rule.network_id)
  return beginOperation(tx, by, firewallRuleDelete, {
    resourceId: rule.id,
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
    { name: 'settle', tx: settle },
    { name: 'apply', call: applyToNetwork },
    { name: 'release', tx: release },
  ],
}

async function release(work: Work, tx: Tx): Promise<Outcome> {
  const rule = await ruleOf(work, tx)
  await forgetRule(work, tx)
  await tellOfRule(tx, work, rule, 'firewall_rule.deleted')
  return done(null)
}
