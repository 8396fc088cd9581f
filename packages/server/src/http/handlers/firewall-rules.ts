import type { FirewallRule } from '@slipway/contract'
import { notFound } from '../../domain/failure.ts'
import { admitFirewallRuleCreate } from '../../operations/firewall/create.ts'
import { admitFirewallRuleDelete } from '../../operations/firewall/delete.ts'
import { testFirewall } from '../../operations/firewall/test.ts'
import { admitFirewallRuleUpdate, checkFirewallRuleUpdate } from '../../operations/firewall/update.ts'
import { findRuleView, listRuleViews, lockRule, type RuleRow } from '../../store/network/rules.ts'
import type { Context, Handlers } from '../context.ts'
import { labelFilter } from '../filters.ts'
import { pageOfRecords } from '../pages.ts'
import { started } from './operations.ts'

type ChangeRoutes = 'firewallRuleUpdate' | 'firewallRuleDelete'

async function locked({ tx, by, params }: Context<ChangeRoutes>): Promise<RuleRow> {
  const rule = await lockRule(tx, by.projectId, params.rule_id)
  if (!rule) throw notFound('firewall rule')
  return rule
}

export const firewallRuleHandlers: Handlers<
  'firewallRuleCreate' | 'firewallRuleList' | 'firewallRuleGet' | 'firewallRuleTest' | ChangeRoutes
> = {
  firewallRuleCreate: async ({ tx, by, body }) => started(await admitFirewallRuleCreate(tx, by, body)),

  firewallRuleList(context) {
    const { tx, project, query } = context
    const filter = { projectId: project.projectId, labels: labelFilter(query) }
    const read = (before: string | null, limit: number) => listRuleViews(tx, filter, before, limit)
    return pageOfRecords<FirewallRule>(context, read)
  },

  async firewallRuleGet({ tx, project, params }) {
    const rule = await findRuleView(tx, project.projectId, params.rule_id)
    if (!rule) throw notFound('firewall rule')
    return rule
  },

  async firewallRuleUpdate(context) {
    const { tx, by, body } = context
    checkFirewallRuleUpdate(body)
    return started(await admitFirewallRuleUpdate(tx, by, await locked(context), body))
  },

  async firewallRuleDelete(context) {
    return started(await admitFirewallRuleDelete(context.tx, context.by, await locked(context)))
  },

  firewallRuleTest: ({ tx, by, body }) => testFirewall(tx, by.projectId, body),
}
