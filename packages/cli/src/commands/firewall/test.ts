import type { Cli } from '../../core/cli.ts'
import { command, oneOf } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { idOf } from '../../core/resource.ts'
import { exitCodes } from '../../errors/cli-error.ts'
import { printOne } from '../../output/print.ts'
import { vms } from '../vm/resource.ts'
import { looksLikeAddress } from './endpoints.ts'
import { apiDirection, type Direction, directionOption } from './rule-options.ts'
import { type Protocol, protocols } from './rule-words.ts'

interface RuleTestInput {
  from: string
  to: string
  port?: number
  protocol: Protocol
  direction: Direction
}

export const firewallTest = command<RuleTestInput>({
  name: 'test',
  summary: 'check whether the rules allow a packet; the exit code is 1 if they do not',
  options: [
    { flags: '--from <address>', description: 'an address or a VM', required: true, complete: 'vm' },
    { flags: '--to <address>', description: 'an address or a VM', required: true, complete: 'vm' },
    { flags: '--port <port>', description: 'destination port', parse: parseNumber },
    { flags: '--protocol <protocol>', ...oneOf(protocols), default: 'tcp' },
    directionOption,
  ],
  examples: ['slipway firewall test --from 203.0.113.7 --to train-7 --port 22'],
  async run(cli, { from, to, port, protocol, direction }) {
    const addressOrId = (text: string) => (looksLikeAddress(text) ? text : idOf(cli, vms, text))
    const [source, destination] = await Promise.all([addressOrId(from), addressOrId(to)])
    const verdict = await cli.client.firewallRuleTest(
      { project_id: await cli.project() },
      { direction: apiDirection[direction], protocol, source, destination, destination_port: port },
    )
    const rule = await ruleName(cli, verdict.rule_id)
    await printOne(cli, verdict, ({ allowed }) => [
      ['Allowed', allowed ? 'yes' : 'no'],
      ['Decided by', rule || 'the default, because no rule matches'],
    ])
    if (!verdict.allowed) cli.exitCode = exitCodes.error
  },
})

/** Returns the name of a rule for a table, and its id for other formats. */
async function ruleName(cli: Cli, rule_id: string): Promise<string> {
  if (!rule_id || cli.format.kind !== 'table') return rule_id
  return (await cli.client.firewallRuleGet({ project_id: await cli.project(), rule_id })).name
}
