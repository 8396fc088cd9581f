import { anywhere } from '@slipway/contract/cidr'
import type { FirewallRuleCreate } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { command, oneOf } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { follow, type WaitFlags } from '../../core/progress.ts'
import { printOne } from '../../output/print.ts'
import { endpointsOf, networkOf } from './endpoints.ts'
import { firewallRules } from './resource.ts'
import {
  apiDirection,
  type Direction,
  directionOption,
  networkOption,
  type RuleFlags,
  ruleOptions,
} from './rule-options.ts'

interface RuleCreateInput extends RuleFlags {
  name: string
  action: 'allow' | 'deny'
  direction: Direction
  network?: string
  label?: string[]
}

export const firewallCreate = command<RuleCreateInput>({
  name: 'create',
  summary: 'create a firewall rule',
  arguments: [{ syntax: '<name>', description: 'name of the rule' }],
  options: [
    { flags: '--action <action>', ...oneOf(['allow', 'deny']), default: 'allow' },
    directionOption,
    networkOption,
    labelOption,
    ...ruleOptions,
  ],
  examples: [
    'slipway firewall create allow-jupyter --protocol tcp --port 8888 --from 203.0.113.0/24',
    'slipway firewall create no-mail --action deny --direction outbound --protocol tcp --port 25 --to 0.0.0.0/0',
  ],
  async run(cli, { name, action, direction, ...flags }) {
    const network = await networkOf(cli, flags.network)
    const [from, to] = direction === 'inbound' ? [anywhere, network.cidr] : [network.cidr, anywhere]
    await createRule(cli, flags, {
      name,
      action,
      direction: apiDirection[direction],
      vpc_network_id: network.id,
      protocols: flags.protocol ?? ['tcp'],
      sources: await endpointsOf(cli, flags.from ?? [from]),
      destinations: await endpointsOf(cli, flags.to ?? [to]),
      source_ports: flags.sourcePort ?? [],
      destination_ports: flags.port ?? [],
      ...(flags.label && { labels: parseLabels(flags.label) }),
    })
  },
})

/** Creates a rule, waits for the operation and prints the rule. */
export async function createRule(cli: Cli, wait: WaitFlags, body: FirewallRuleCreate): Promise<void> {
  const { operation } = await cli.client.firewallRuleCreate({ project_id: await cli.project() }, body)
  const finished = await follow(cli, `Creating ${body.name}`, operation, wait)
  if (finished) await printOne(cli, finished.result, firewallRules.fields)
}
