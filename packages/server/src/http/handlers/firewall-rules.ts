import type { FirewallRule } from '@slipway/contract'
import { requireFound } from '../../domain/failure.ts'
import { admitFirewallRuleCreate } from '../../operations/firewall/create.ts'
import { admitFirewallRuleDelete } from '../../operations/firewall/delete.ts'
import { testFirewall } from '../../operations/firewall/test.ts'
import { admitFirewallRuleUpdate, checkFirewallRuleUpdate } from '../../operations/firewall/update.ts'
import { findRuleView, listRuleViews, lockRule, type RuleRow } from '../../store/network/rules.ts'
import type { Context, Handlers } from '../context.ts'
import { labelFilter } from '../filters.ts'
import { pageOfRecords } from '../pages.ts'
import { operationResponse } from './operations.ts'

type ChangeRoutes = 'firewallRuleUpdate' | 'firewallRuleDelete'

const lockRuleOrThrow = async ({ tx, by, params }: Context<ChangeRoutes>): Promise<RuleRow> =>
  requireFound('firewall rule', await lockRule(tx, by.projectId, params.rule_id))

export const firewallRuleHandlers = {
  firewallRuleCreate: async ({ tx, by, body }) =>
    operationResponse(await admitFirewallRuleCreate(tx, by, body)),

  firewallRuleList(context) {
    const filter = { projectId: context.project.projectId, labels: labelFilter(context.query) }
    return pageOfRecords<FirewallRule>(context, (beforeId, limit, bytes) =>
      listRuleViews(context.tx, { ...filter, beforeId, limit, bytes }),
    )
  },

  firewallRuleGet: async ({ tx, project, params }) =>
    requireFound('firewall rule', await findRuleView(tx, project.projectId, params.rule_id)),

  async firewallRuleUpdate(context) {
    const { tx, by, body } = context
    checkFirewallRuleUpdate(body)
    return operationResponse(await admitFirewallRuleUpdate(tx, by, await lockRuleOrThrow(context), body))
  },

  firewallRuleDelete: async (context) =>
    operationResponse(await admitFirewallRuleDelete(context.tx, context.by, await lockRuleOrThrow(context))),

  firewallRuleTest: ({ tx, by, body }) => testFirewall(tx, by.projectId, body),
} satisfies Partial<Handlers>
