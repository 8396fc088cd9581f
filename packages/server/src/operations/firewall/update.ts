import type { FirewallRuleUpdate } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import type { Definition, Work } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { markFirewallsOutdated } from '../../store/network/firewalls.ts'
import { type RuleRow, raiseRuleGeneration, setRuleState, writeRule } from '../../store/network/rules.ts'
import { beginOperation, type ProjectRequester, requireNoOperation } from '../admission.ts'
import { checkEndpointForms, checkEndpoints, checkPorts } from './checks.ts'
import { activate, applyToNetwork, ruleOf, writeUniqueRuleName } from './rule.ts'

/** Makes the checks that need only the body, before the rule is read. */
export function checkFirewallRuleUpdate(body: FirewallRuleUpdate): void {
  if (Object.keys(body).length === 0)
    throw new Failure('invalid_argument', 'The body is empty. Send at least one field to change.')
  checkEndpointForms(body)
}

/** Reads show the changed rule from now on; its state shows when the change is active. */
export async function admitFirewallRuleUpdate(
  tx: Tx,
  by: ProjectRequester,
  rule: RuleRow,
  body: FirewallRuleUpdate,
): Promise<BegunOperation> {
  const changed = { ...rule, ...body }
  checkPorts(changed, body)
  const { projectId } = by
  const sources = body.sources ? await checkEndpoints(tx, projectId, 'sources', body.sources) : rule.sources
  const destinations = body.destinations
    ? await checkEndpoints(tx, projectId, 'destinations', body.destinations)
    : rule.destinations
  await writeUniqueRuleName(changed.name, () =>
    writeRule(tx, { ...changed, sources, destinations, state: 'updating' }),
  )
  await requireNoOperation(tx, rule.id, `The firewall rule ${rule.name}`)
  await markFirewallsOutdated(tx, rule.network_id)
  return beginOperation(tx, by, firewallRuleUpdate, {
    resource: { id: rule.id, name: changed.name, labels: changed.labels },
    generation: await raiseRuleGeneration(tx, rule.id),
    request: body,
    scratch: { before: rule },
    eventType: 'firewall_rule.updating',
  })
}

export const firewallRuleUpdate: Definition = {
  kind: 'firewall-rule-update',
  name: 'UPDATE',
  resourceType: 'firewall_rule',
  deadlineS: 300,
  steps: [
    { name: 'admit', undoTx: restore },
    { name: 'apply', call: applyToNetwork },
    { name: 'finish', tx: activate },
  ],
  // The rule stays as it was last written, and the reconciler brings the VMs of the network up to date.
  onAbandon: (tx, _by, { resource_id }) => setRuleState(tx, resource_id, 'active', ['updating']),
}

async function restore(work: Work, tx: Tx): Promise<void> {
  const rule = await ruleOf(work, tx)
  const before = work.scratch.before as RuleRow
  await writeUniqueRuleName(before.name, () => writeRule(tx, { ...before, state: 'active' }))
  await markFirewallsOutdated(tx, rule.network_id)
}
