import { renameCommand } from '../../core/annotation-commands.ts'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { subnetCreate } from './create.ts'
import { subnets } from './resource.ts'

export const subnet: GroupSpec = {
  name: 'subnet',
  summary: 'subnets of networks, each in one location',
  commands: [
    listCommand(subnets),
    showCommand(subnets, async (cli, subnet_id) =>
      cli.client.subnetGet({ project_id: await cli.project(), subnet_id }),
    ),
    subnetCreate,
    renameCommand({
      resource: subnets,
      change: async (cli, subnet_id, { name }) =>
        cli.client.subnetUpdate({ project_id: await cli.project(), subnet_id }, { name }),
    }),
    deleteCommand(subnets, async (cli, subnet_id) => {
      await cli.client.subnetDelete({ project_id: await cli.project(), subnet_id })
      return {}
    }),
  ],
}
