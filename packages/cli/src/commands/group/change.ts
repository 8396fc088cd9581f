import { type AnyCommand, command } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { templates } from '../template/resource.ts'
import { groups } from './resource.ts'

export const groupResize = command<{ ref: string; count: number } & WaitFlags>({
  name: 'resize',
  summary: 'change the number of members',
  details:
    'Either all new members are added or none. If the new number is lower, the members with the highest numbers are deleted.',
  arguments: [refArgument(groups)],
  options: [
    {
      flags: '--count <number>',
      description: 'number of members, from 0 to 64',
      required: true,
      parse: parseNumber,
    },
    ...waitOptions,
  ],
  examples: ['slipway group resize trainer --count 8'],
  async run(cli, { ref, count, ...wait }) {
    const target = { project_id: await cli.project(), instance_group_id: await idOf(cli, groups, ref) }
    const { operation } = await cli.client.instanceGroupUpdate(target, { desired_count: count })
    const finished = await follow(cli, `Resizing ${ref}`, operation, wait)
    if (finished) await printOne(cli, finished.result, groups.fields)
  },
})

export const groupTemplate = command<{ ref: string; template: string }>({
  name: 'set-template',
  summary: 'set the template for members that are added later',
  arguments: [refArgument(groups)],
  options: [
    {
      flags: '--template <template>',
      description: 'instance template',
      complete: 'template',
      required: true,
    },
  ],
  examples: ['slipway group set-template trainer --template trainer'],
  async run(cli, { ref, template }) {
    const target = { project_id: await cli.project(), instance_group_id: await idOf(cli, groups, ref) }
    const template_id = await idOf(cli, templates, template)
    await cli.client.instanceGroupUpdate(target, { template_id })
    await printOne(cli, await cli.client.instanceGroupGet(target), groups.fields)
  },
})

function powerCommand(
  name: 'start' | 'stop',
  route: 'instanceGroupStart' | 'instanceGroupStop',
  summary: string,
  title: string,
): AnyCommand {
  return command<{ ref: string } & WaitFlags>({
    name,
    summary,
    arguments: [refArgument(groups)],
    options: waitOptions,
    examples: [`slipway group ${name} trainer`],
    async run(cli, { ref, ...wait }) {
      const target = { project_id: await cli.project(), instance_group_id: await idOf(cli, groups, ref) }
      const { operation } = await cli.client[route](target)
      const finished = await follow(cli, `${title} ${ref}`, operation, wait)
      if (finished) await printOne(cli, finished.result, groups.fields)
    },
  })
}

export const groupStart = powerCommand(
  'start',
  'instanceGroupStart',
  'start the stopped members: either all of them or none',
  'Starting',
)
export const groupStop = powerCommand('stop', 'instanceGroupStop', 'stop all members', 'Stopping')
