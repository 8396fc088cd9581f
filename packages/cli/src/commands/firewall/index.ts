import type { FirewallRule, FirewallRuleCreate, FirewallRuleUpdate } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { type AnyCommand, command, type GroupSpec, type OptionSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { parseList, parseNumber } from '../../core/parse.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { printOne } from '../../output/print.ts'
import { networks } from '../network/resource.ts'
import { subnets } from '../subnet/resource.ts'
import { vms } from '../vm/resource.ts'
import { firewallRules } from './resource.ts'
import { looksLikeAddress, parseSpokenRule, serviceNames, spokenName } from './rule-words.ts'

interface RuleFlags extends WaitFlags {
  network?: string
  protocol?: FirewallRule['protocols']
  from?: string[]
  to?: string[]
  port?: string[]
  sourcePort?: string[]
}

const network: OptionSpec = {
  flags: '--network <network>',
  description: 'network of the rule; default: the default one',
  complete: 'network',
}
const ruleOptions: OptionSpec[] = [
  { flags: '--protocol <protocols>', description: 'tcp, udp, icmp; several with commas', parse: parseList },
  {
    flags: '--from <places>',
    description: 'addresses, blocks, or names of VMs, subnets, networks',
    parse: parseList,
  },
  { flags: '--to <places>', description: 'likewise', parse: parseList },
  {
    flags: '--port <ports>',
    description: 'destination ports: 22,3000-8080; all if left out',
    parse: parseList,
  },
  { flags: '--source-port <ports>', description: 'source ports; all if left out', parse: parseList },
  ...waitOptions,
]

export const firewall: GroupSpec = {
  name: 'firewall',
  summary: 'firewall rules',
  commands: [
    spokenCommand('allow', 'let traffic in, in few words'),
    spokenCommand('deny', 'keep traffic out, in few words; a denial beats every permission'),
    listCommand(firewallRules, { list: listWithNames }),
    showCommand(firewallRules, async (cli, rule_id) =>
      cli.client.firewallRuleGet({ project_id: await cli.project(), rule_id }),
    ),
    command<RuleFlags & { name: string; action: 'allow' | 'deny'; direction: 'ingress' | 'egress' }>({
      name: 'create',
      summary: 'create a firewall rule, with every part of it',
      arguments: [{ syntax: '<name>', description: 'name of the rule' }],
      options: [
        {
          flags: '--action <action>',
          description: 'allow or deny',
          default: 'allow',
          complete: ['allow', 'deny'],
        },
        {
          flags: '--direction <direction>',
          description: 'ingress or egress',
          default: 'ingress',
          complete: ['ingress', 'egress'],
        },
        network,
        ...ruleOptions,
      ],
      examples: [
        'slipway firewall create allow-jupyter --protocol tcp --port 8888 --from 203.0.113.0/24',
        'slipway firewall create no-mail --action deny --direction egress --protocol tcp --port 25 --to 0.0.0.0/0',
      ],
      async run(cli, { name, action, direction, ...flags }) {
        const own = await networkOf(cli, flags.network)
        const outside = ['0.0.0.0/0']
        const [from, to] = direction === 'ingress' ? [outside, [own.cidr]] : [[own.cidr], outside]
        await create(cli, flags, {
          name,
          action,
          direction,
          vpc_network_id: own.id,
          protocols: flags.protocol ?? ['tcp'],
          sources: await placesOf(cli, flags.from ?? from),
          destinations: await placesOf(cli, flags.to ?? to),
          source_ports: flags.sourcePort ?? [],
          destination_ports: flags.port ?? [],
        })
      },
    }),
    command<RuleFlags & { ref: string; name?: string }>({
      name: 'change',
      summary: 'change parts of a firewall rule',
      arguments: [refArgument(firewallRules)],
      options: [{ flags: '--name <name>', description: 'another name' }, ...ruleOptions],
      examples: ['slipway firewall change allow-jupyter --from 203.0.113.0/24,198.51.100.7'],
      async run(cli, { ref, name, protocol, from, to, port, sourcePort, ...wait }) {
        const body: FirewallRuleUpdate = {
          ...(name && { name }),
          ...(protocol && { protocols: protocol }),
          ...(from && { sources: await placesOf(cli, from) }),
          ...(to && { destinations: await placesOf(cli, to) }),
          ...(port && { destination_ports: port }),
          ...(sourcePort && { source_ports: sourcePort }),
        }
        if (Object.keys(body).length === 0) throw new UsageError('Nothing to change was named.')
        const target = { project_id: await cli.project(), rule_id: await idOf(cli, firewallRules, ref) }
        const { operation } = await cli.client.firewallRuleUpdate(target, body)
        const finished = await follow<FirewallRule>(cli, `Changing ${ref}`, operation, wait)
        if (finished) await printOne(cli, finished.result, firewallRules.fields)
      },
    }),
    deleteCommand(
      firewallRules,
      async (cli, rule_id) => cli.client.firewallRuleDelete({ project_id: await cli.project(), rule_id }),
      { isOperation: true },
    ),
    testCommand(),
  ],
}

function spokenCommand(action: 'allow' | 'deny', summary: string): AnyCommand {
  return command<{ words: string[]; name?: string; network?: string } & WaitFlags>({
    name: action,
    summary,
    details: `WHAT is a service (${serviceNames.join(', ')}), a port (8000), a range (3000-8080) or 53/udp. Left out, “from” is anywhere and “to” is the whole network.`,
    arguments: [
      { syntax: '<words...>', description: 'WHAT [from WHERE] [to WHERE]', complete: serviceNames },
    ],
    options: [
      { flags: '--name <name>', description: 'name of the rule; made from the words if left out' },
      network,
      ...waitOptions,
    ],
    examples: [
      `slipway firewall ${action} ssh from 203.0.113.0/24`,
      `slipway firewall ${action} jupyter from 203.0.113.7 to train-7`,
      `slipway firewall ${action} 3000-8080`,
    ],
    async run(cli, { words, name, network, ...wait }) {
      const spoken = parseSpokenRule(words)
      const own = await networkOf(cli, network)
      await create(cli, wait, {
        name: name ?? spokenName(action, words),
        action,
        direction: 'ingress',
        vpc_network_id: own.id,
        protocols: spoken.protocols,
        sources: await placesOf(cli, spoken.from.length > 0 ? spoken.from : ['0.0.0.0/0']),
        destinations: await placesOf(cli, spoken.to.length > 0 ? spoken.to : [own.cidr]),
        source_ports: [],
        destination_ports: spoken.ports,
      })
    },
  })
}

function testCommand(): AnyCommand {
  interface TestInput {
    from: string
    to: string
    port?: number
    protocol: 'tcp' | 'udp' | 'icmp'
    direction: 'ingress' | 'egress'
  }
  return command<TestInput>({
    name: 'test',
    summary: 'ask whether a packet would pass; exit code 1 if not',
    options: [
      { flags: '--from <place>', description: 'an address or a VM', required: true, complete: 'vm' },
      { flags: '--to <place>', description: 'an address or a VM', required: true, complete: 'vm' },
      { flags: '--port <port>', description: 'destination port', parse: parseNumber },
      {
        flags: '--protocol <protocol>',
        description: 'tcp, udp or icmp',
        default: 'tcp',
        complete: ['tcp', 'udp', 'icmp'],
      },
      {
        flags: '--direction <direction>',
        description: 'ingress or egress',
        default: 'ingress',
        complete: ['ingress', 'egress'],
      },
    ],
    examples: ['slipway firewall test --from 203.0.113.7 --to train-7 --port 22'],
    async run(cli, { from, to, port, protocol, direction }) {
      const place = (text: string) => (looksLikeAddress(text) ? text : idOf(cli, vms, text))
      const [source, destination] = await Promise.all([place(from), place(to)])
      const answer = await cli.client.firewallRuleTest(
        { project_id: await cli.project() },
        { direction, protocol, source, destination, destination_port: port },
      )
      await printOne(cli, answer, ({ allowed, rule_id }) => [
        ['Passes', allowed ? 'yes' : 'no'],
        ['Decided by', rule_id || 'no rule allows it'],
      ])
      if (!answer.allowed) process.exitCode = 1
    },
  })
}

async function create(cli: Cli, wait: WaitFlags, body: FirewallRuleCreate): Promise<void> {
  const { operation } = await cli.client.firewallRuleCreate({ project_id: await cli.project() }, body)
  const finished = await follow<FirewallRule>(cli, `Creating ${body.name}`, operation, wait)
  if (finished) await printOne(cli, finished.result, firewallRules.fields)
}

/** For people, the VMs, subnets and networks in a rule have their names; programs get the ids. */
async function listWithNames(cli: Cli): Promise<FirewallRule[]> {
  if (cli.format.kind !== 'table') return firewallRules.list(cli)
  const [rules, ...named] = await Promise.all([
    firewallRules.list(cli),
    networks.list(cli),
    subnets.list(cli),
    vms.list(cli),
  ])
  const nameOf = new Map(named.flat().map(({ id, name }) => [id, name]))
  const rename = (endpoints: FirewallRule['sources']) =>
    endpoints.map(({ cidr, resource_id }) => ({ cidr, resource_id: nameOf.get(resource_id) ?? resource_id }))
  return rules.map((rule) => ({
    ...rule,
    sources: rename(rule.sources),
    destinations: rename(rule.destinations),
  }))
}

async function networkOf(cli: Cli, wanted: string | undefined): Promise<{ id: string; cidr: string }> {
  const all = await networks.list(cli)
  const found = all.find(({ id, name }) =>
    wanted ? id === wanted || name === wanted : name === 'default-vpc-network',
  )
  const chosen = found ?? (!wanted && all.length === 1 ? all[0] : undefined)
  if (!chosen)
    throw new UsageError('Say which network with --network.', [all.map(({ name }) => name).join(', ')])
  return chosen
}

/** Addresses stay addresses; any other word names a VM, a subnet or a network. */
async function placesOf(cli: Cli, texts: string[]): Promise<{ cidr?: string; resource_id?: string }[]> {
  return Promise.all(
    texts.map(async (text) => {
      if (looksLikeAddress(text)) return { cidr: text }
      for (const kind of [subnets, networks]) {
        const match = (await kind.list(cli)).find(({ name }) => name === text)
        if (match) return { resource_id: match.id }
      }
      return { resource_id: await idOf(cli, vms, text) }
    }),
  )
}
