import type { FirewallRuleUpdate } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import type { Definition, Work } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { wantFirewalls } from '../../store/network/firewalls.ts'
import { moveRule, type RuleRow, raiseRuleGeneration, writeRule } from '../../store/network/rules.ts'
import { beginOperation, type ProjectRequester, requireIdle } from '../admission.ts'
import { checkEndpointForms, checkEndpoints, checkPorts } from './checks.ts'
import { activate, applyToNetwork, nameOrConflict, ruleOf } from './rule.ts'

/** What the body alone tells, before the rule is looked for. */
export function checkFirewallRuleUpdate(body: FirewallRuleUpdate): void {
  if (Object.keys(body).length === 0)
    throw new Failure('invalid_argument', 'Name at least one member to change.')
  checkEndpointForms(body)
}

/** The rule reads as changed from here on; its state says when the change is in force. */
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
  await nameOrConflict(changed.name, () =>
    writeRule(tx, { ...changed, sources, destinations, state: 'updating' }),
  )
  await requireIdle(tx, rule.id, `The firewall rule ${rule.name}`)
  await wantFirewalls(tx, rule.network_id)
  return beginOperation(tx, by, firewallRuleUpdate, {
    resourceId: rule.id,
    location: '',
    generation: await raiseRuleGeneration(tx, rule.id),
    request: body,
    scratch: { before: rule },
    eventType: 'firewall_rule.updating',
    eventData: { name: changed.name, labels: changed.labels },
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
  // It stands as it was last written; the VMs of its network go on catching up.
  onAbandon: (tx, _by, { resource_id }) => moveRule(tx, resource_id, 'active', ['updating']),
}

async function restore(work: Work, tx: Tx): Promise<void> {
  const rule = await ruleOf(work, tx)
  const before = work.scratch.before as RuleRow
  await nameOrConflict(before.name, () => writeRule(tx, { ...before, state: 'active' }))
  await wantFirewalls(tx, rule.network_id)
}
