import { parseCidr } from '../../domain/addresses.ts'
import { Failure, invalidField, notFound } from '../../domain/failure.ts'
import { decidePacket } from '../../domain/firewall.ts'
import { isUuid } from '../../domain/ids.ts'
import { compileFor } from '../../operations/firewall/apply.ts'
import { admitFirewallRuleCreate } from '../../operations/firewall/create.ts'
import { admitFirewallRuleDelete } from '../../operations/firewall/delete.ts'
import { admitFirewallRuleUpdate } from '../../operations/firewall/update.ts'
import { operationView } from '../../store/compute/operations.ts'
import { findVm, type VmRow } from '../../store/compute/vms.ts'
import { findVmByAddress } from '../../store/network/firewalls.ts'
import { findRule, listRules, lockRule, type RuleRow, ruleView } from '../../store/network/rules.ts'
import type { Context, Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'
import { requesterOf } from '../requester.ts'

async function locked(context: Context<'firewallRuleUpdate' | 'firewallRuleDelete'>): Promise<RuleRow> {
  const rule = await lockRule(context.tx, context.project.projectId, context.params.rule_id)
  if (!rule) throw notFound('firewall rule')
  return rule
}

/** A VM by id or by one of its addresses; the address alone when it is nobody's here. */
async function endOf(
  context: Context,
  field: string,
  text: string,
): Promise<{ vm?: VmRow; address: string }> {
  const { projectId } = context.project
  if (isUuid(text)) {
    const vm = await findVm(context.tx, projectId, text)
    if (!vm) throw invalidField(field, 'is not a VM of this project')
    return { vm, address: vm.private_address }
  }
  if (!parseCidr(text) || text.includes('/')) throw invalidField(field, 'must be an IPv4 address or a VM id')
  const found = await findVmByAddress(context.tx, projectId, text)
  const vm = found && (await findVm(context.tx, projectId, found.id))
  return vm ? { vm, address: text } : { address: text }
}

export const firewallRuleHandlers: Handlers<
  | 'firewallRuleCreate'
  | 'firewallRuleList'
  | 'firewallRuleGet'
  | 'firewallRuleUpdate'
  | 'firewallRuleDelete'
  | 'firewallRuleTest'
> = {
  async firewallRuleCreate(context) {
    const operation = await admitFirewallRuleCreate(context.tx, requesterOf(context), context.body)
    return { operation: operationView(operation) }
  },

  async firewallRuleList({ tx, project, query }) {
    const key = `firewall-rules ${project.projectId}`
    const limit = pageLimit(query)
    const rows = await listRules(tx, project.projectId, readPageToken(key, query.page_token), limit + 1)
    return toPage(key, rows, limit, (row) => row.id, ruleView)
  },

  async firewallRuleGet({ tx, project, params }) {
    const rule = await findRule(tx, project.projectId, params.rule_id)
    if (!rule) throw notFound('firewall rule')
    return ruleView(rule)
  },

  async firewallRuleUpdate(context) {
    const rule = await locked(context)
    const operation = await admitFirewallRuleUpdate(context.tx, requesterOf(context), rule, context.body)
    return { operation: operationView(operation) }
  },

  async firewallRuleDelete(context) {
    const operation = await admitFirewallRuleDelete(context.tx, requesterOf(context), await locked(context))
    return { operation: operationView(operation) }
  },

  /** Asked of the VM on the rule's side: the destination of what comes in, the source of what goes out. */
  async firewallRuleTest(context) {
    const { body, tx } = context
    const source = await endOf(context, 'source', body.source)
    const destination = await endOf(context, 'destination', body.destination)
    const isIngress = body.direction === 'ingress'
    const local = isIngress ? destination : source
    if (!local.vm)
      throw new Failure(
        'invalid_argument',
        `For ${body.direction} the ${isIngress ? 'destination' : 'source'} must be a VM of this project, by id or address.`,
      )
    const decision = decidePacket(await compileFor(tx, local.vm), {
      direction: body.direction,
      protocol: body.protocol,
      peer: isIngress ? source.address : destination.address,
      ...(body.destination_port !== undefined && { destinationPort: body.destination_port }),
    })
    return { allowed: decision.allowed, rule_id: decision.ruleId }
  },
}
