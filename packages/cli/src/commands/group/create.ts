import { memberLossPolicies, placementPolicies } from '@slipway/contract/states'
import type { RouteBody } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { command, type OptionSpec, oneOf } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { templates } from '../template/resource.ts'
import { typeOption, type VmInput, vmFieldsOf, vmOptions } from '../vm/options.ts'
import { groups } from './resource.ts'

type Body = RouteBody<'instanceGroupCreate'>

export interface NewGroupInput extends VmInput {
  name: string
  count: number
  template?: string
  location?: string
  placement?: NonNullable<Body['placement_policy']>
  onMemberLoss?: NonNullable<Body['on_member_loss']>
}

/** The options that describe a new group. */
export const newGroupOptions: OptionSpec[] = [
  {
    flags: '--count <number>',
    description: 'number of members, from 1 to 64',
    required: true,
    parse: parseNumber,
  },
  {
    flags: '--template <template>',
    description: 'instance template; other options replace its values',
    complete: 'template',
  },
  typeOption,
  {
    flags: '--location <location>',
    description: 'location of all members; `any` means the first location where all fit',
    complete: 'location',
    also: ['any'],
  },
  ...vmOptions,
  { flags: '--placement <policy>', ...oneOf(placementPolicies) },
  {
    flags: '--on-member-loss <action>',
    description: 'what to do when a member is lost with its host: none or replace',
    values: memberLossPolicies,
  },
]

export const groupCreate = command<NewGroupInput & WaitFlags>({
  name: 'create',
  summary: 'create an instance group: either all of its VMs or none',
  details:
    'The members are named NAME-1, NAME-2 and so on. All of them become running, and billing starts, when the last ' +
    'one responds. Each member finds the others in /etc/hosts and in /run/slipway/group.env.',
  arguments: [{ syntax: '<name>', description: 'name of the group' }],
  options: [...newGroupOptions, ...waitOptions],
  examples: [
    'slipway group create trainer --count 4 --template trainer',
    'slipway group create trainer --count 2 --type a100.8x --location any --image ubuntu24.04-nvidia --ssh-key laptop --placement spread',
  ],
  async run(cli, input) {
    const { operation } = await cli.client.instanceGroupCreate(
      { project_id: await cli.project() },
      await groupRequestOf(cli, input),
    )
    const finished = await follow(cli, `Creating ${input.name}`, operation, input)
    if (finished) await printOne(cli, finished.result, groups.fields)
  },
})

/** Returns the request body for the new group. */
export async function groupRequestOf(
  cli: Cli,
  { name, count, template, location, placement, onMemberLoss, ...input }: NewGroupInput,
): Promise<Body> {
  const { labels, ...vm } = await vmFieldsOf(cli, input)
  return {
    name,
    desired_count: count,
    ...(template && { template_id: await idOf(cli, templates, template) }),
    vm: { ...vm, ...(location && { location }), ...(labels && { labels }) },
    ...(labels && { labels }),
    ...(placement && { placement_policy: placement }),
    ...(onMemberLoss && { on_member_loss: onMemberLoss }),
  }
}
