import type { FirewallRuleUpdate } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { follow } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { printOne } from '../../output/print.ts'
import { endpointsOf } from './endpoints.ts'
import { firewallRules } from './resource.ts'
import { type RuleFlags, ruleOptions } from './rule-options.ts'

export const firewallChange = command<RuleFlags & { ref: string; name?: string }>({
  name: 'change',
  summary: 'change a firewall rule',
  arguments: [refArgument(firewallRules)],
  options: [{ flags: '--name <name>', description: 'new name' }, ...ruleOptions],
  examples: ['slipway firewall change allow-jupyter --from 203.0.113.0/24,198.51.100.7'],
  async run(cli, { ref, name, protocol, from, to, port, sourcePort, ...wait }) {
    const body: FirewallRuleUpdate = {
      ...(name && { name }),
      ...(protocol && { protocols: protocol }),
      ...(from && { sources: await endpointsOf(cli, from) }),
      ...(to && { destinations: await endpointsOf(cli, to) }),
      ...(port && { destination_ports: port }),
      ...(sourcePort && { source_ports: sourcePort }),
    }
    if (Object.keys(body).length === 0)
      throw new UsageError('Nothing to change. Use at least one of the options.')
    const target = { project_id: await cli.project(), rule_id: await idOf(cli, firewallRules, ref) }
    const { operation } = await cli.client.firewallRuleUpdate(target, body)
    const finished = await follow(cli, `Changing ${ref}`, operation, wait)
    if (finished) await printOne(cli, finished.result, firewallRules.fields)
  },
})
