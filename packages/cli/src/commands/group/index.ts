import type { InstanceGroup } from '@slipway/sdk'
import { labelCommand, protectCommands } from '../../core/annotation-commands.ts'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { selectorOption } from '../../core/labels.ts'
import { groupResize, groupStart, groupStop, groupTemplate } from './change.ts'
import { groupCreate } from './create.ts'
import { groups } from './resource.ts'

const kindWithLabels: Parameters<typeof labelCommand<InstanceGroup>>[0] = {
  resource: groups,
  get: async (cli, instance_group_id) =>
    cli.client.instanceGroupGet({ project_id: await cli.project(), instance_group_id }),
  change: async (cli, instance_group_id, { name: _, ...change }) =>
    cli.client.instanceGroupUpdate({ project_id: await cli.project(), instance_group_id }, change),
}

export const group: GroupSpec = {
  name: 'group',
  summary: 'groups of VMs that are created together or not at all',
  commands: [
    groupCreate,
    listCommand<InstanceGroup, { selector?: string }>(groups, {
      options: [selectorOption],
      list: async (cli, { selector }) => groups.list(cli, { label_selector: selector }),
    }),
    showCommand(groups, async (cli, instance_group_id) =>
      cli.client.instanceGroupGet({ project_id: await cli.project(), instance_group_id }),
    ),
    groupResize,
    groupTemplate,
    groupStart,
    groupStop,
    labelCommand(kindWithLabels),
    ...protectCommands(kindWithLabels),
    deleteCommand<InstanceGroup, { deleteDisks?: boolean }>(
      groups,
      async (cli, instance_group_id, { deleteDisks }) =>
        cli.client.instanceGroupDelete({
          project_id: await cli.project(),
          instance_group_id,
          delete_disks: deleteDisks,
        }),
      {
        loses: 'All members will also be deleted.',
        isOperation: true,
        options: [
          {
            flags: '--delete-disks',
            description: 'also delete the disks that were created with the members',
          },
        ],
      },
    ),
  ],
}
