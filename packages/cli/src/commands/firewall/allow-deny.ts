import { anywhere } from '@slipway/contract/cidr'
import { type AnyCommand, command } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { type WaitFlags, waitOptions } from '../../core/progress.ts'
import { createRule } from './create.ts'
import { endpointsOf, networkOf } from './endpoints.ts'
import { networkOption } from './rule-options.ts'
import { nameOfWords, parseRuleWords, serviceNames } from './rule-words.ts'

function wordsCommand(action: 'allow' | 'deny', summary: string): AnyCommand {
  return command<{ words: string[]; name?: string; network?: string; label?: string[] } & WaitFlags>({
    name: action,
    summary,
    details: `WHAT is a service (${serviceNames.join(', ')}), a port (8000), a range (3000-8080), or a port with a protocol (53/udp). Without “from”, the rule applies to all sources; without “to”, it applies to the whole network.`,
    arguments: [
      { syntax: '<words...>', description: 'WHAT [from WHERE] [to WHERE]', complete: serviceNames },
    ],
    options: [
      { flags: '--name <name>', description: 'name of the rule (default: derived from the arguments)' },
      networkOption,
      labelOption,
      ...waitOptions,
    ],
    examples: [
      `slipway firewall ${action} ssh from 203.0.113.0/24`,
      `slipway firewall ${action} jupyter from 203.0.113.7 to train-7`,
      `slipway firewall ${action} 3000-8080`,
    ],
    async run(cli, { words, name, network, label, ...wait }) {
      const rule = parseRuleWords(words)
      const own = await networkOf(cli, network)
      await createRule(cli, wait, {
        name: name ?? nameOfWords(action, words),
        action,
        direction: 'ingress',
        vpc_network_id: own.id,
        protocols: rule.protocols,
        sources: await endpointsOf(cli, rule.from.length > 0 ? rule.from : [anywhere]),
        destinations: await endpointsOf(cli, rule.to.length > 0 ? rule.to : [own.cidr]),
        source_ports: [],
        destination_ports: rule.ports,
        ...(label && { labels: parseLabels(label) }),
      })
    },
  })
}

export const firewallAllow = wordsCommand('allow', 'allow inbound traffic (short form)')
export const firewallDeny = wordsCommand(
  'deny',
  'deny inbound traffic (short form); a deny rule overrides allow rules',
)
