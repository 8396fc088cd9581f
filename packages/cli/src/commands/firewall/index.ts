import type { FirewallRule } from '@slipway/sdk'
import { labelCommand } from '../../core/annotation-commands.ts'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { firewallAllow, firewallDeny } from './allow-deny.ts'
import { firewallChange } from './change.ts'
import { firewallCreate } from './create.ts'
import { rulesWithNames } from './endpoints.ts'
import { firewallRules } from './resource.ts'
import { firewallTest } from './test.ts'

export const firewall: GroupSpec = {
  name: 'firewall',
  summary: 'firewall rules',
  commands: [
    firewallAllow,
    firewallDeny,
    listCommand(firewallRules, { list: rulesWithNames }),
    showCommand(firewallRules, async (cli, rule_id) =>
      cli.client.firewallRuleGet({ project_id: await cli.project(), rule_id }),
    ),
    firewallCreate,
    firewallChange,
    labelCommand<FirewallRule>({
      resource: firewallRules,
      get: async (cli, rule_id) => cli.client.firewallRuleGet({ project_id: await cli.project(), rule_id }),
      change: async (cli, rule_id, { labels }) =>
        cli.client.firewallRuleUpdate({ project_id: await cli.project(), rule_id }, { labels }),
    }),
    deleteCommand(
      firewallRules,
      async (cli, rule_id) => cli.client.firewallRuleDelete({ project_id: await cli.project(), rule_id }),
      { isOperation: true },
    ),
    firewallTest,
  ],
}
