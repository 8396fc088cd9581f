import type { FirewallRuleCreate } from '@slipway/contract'
import { invalidField } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import type { Tx } from '../../postgres/database.ts'
import type { Definition, Work } from '../../runner/operation.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import type { Requester } from '../../store/events/events.ts'
import { markFirewallsOutdated } from '../../store/network/firewalls.ts'
import { lockNetwork } from '../../store/network/networks.ts'
import { findRule, insertRule } from '../../store/network/rules.ts'
import { beginOperation, type ProjectRequester, requireQuota } from '../admission.ts'
import { checkEndpointForms, checkEndpoints, checkPorts } from './checks.ts'
import { admitFirewallRuleDelete } from './delete.ts'
import { activate, applyToNetwork, forgetRule, ruleOf, writeUniqueRuleName } from './rule.ts'

export async function admitFirewallRuleCreate(
  tx: Tx,
  by: ProjectRequester,
  body: FirewallRuleCreate,
): Promise<BegunOperation> {
  checkEndpointForms(body)
  checkPorts(body)
  if (!(await lockNetwork(tx, by.projectId, body.vpc_network_id)))
    throw invalidField('vpc_network_id', 'must be a network of this project')
  const sources = await checkEndpoints(tx, by.projectId, 'sources', body.sources)
  const destinations = await checkEndpoints(tx, by.projectId, 'destinations', body.destinations)
  const resource = { id: uuid(), name: body.name, labels: body.labels ?? {} }
  await writeUniqueRuleName(body.name, () =>
    insertRule(tx, {
      ...resource,
      projectId: by.projectId,
      networkId: body.vpc_network_id,
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
  await markFirewallsOutdated(tx, body.vpc_network_id)
  const operation = await beginOperation(tx, by, firewallRuleCreate, {
    resource,
    generation: 1,
    request: echo(body),
    eventType: 'firewall_rule.creating',
  })
  await requireQuota(tx, by.projectId, { firewall_rules: 1 })
  return operation
}

/** The request echo shows direction and action in their long forms. */
const echo = (body: FirewallRuleCreate) => ({
  ...body,
  direction: `DIRECTION_${body.direction.toUpperCase()}`,
  action: `ACTION_${body.action.toUpperCase()}`,
})

export const firewallRuleCreate: Definition = {
  kind: 'firewall-rule-create',
  name: 'CREATE',
  resourceType: 'firewall_rule',
  deadlineS: 300,
  steps: [
    { name: 'admit', undoTx: withdraw },
    { name: 'apply', call: applyToNetwork },
    { name: 'finish', tx: activate },
  ],
  onAbandon: deleteAbandoned,
}

async function deleteAbandoned(
  tx: Tx,
  by: Requester,
  { project_id, resource_id }: OperationRow,
): Promise<void> {
  const rule = await findRule(tx, project_id, resource_id)
  if (rule) await admitFirewallRuleDelete(tx, { ...by, projectId: project_id }, rule)
}

async function withdraw(work: Work, tx: Tx): Promise<void> {
  const rule = await ruleOf(work, tx)
  await forgetRule(tx, rule)
  await markFirewallsOutdated(tx, rule.network_id)
}
