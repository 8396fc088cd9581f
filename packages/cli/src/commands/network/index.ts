import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { networkCreate } from './create.ts'
import { networks } from './resource.ts'

export const network: GroupSpec = {
  name: 'network',
  summary: 'private networks',
  commands: [
    listCommand(networks),
    showCommand(networks, async (cli, network_id) =>
      cli.client.networkGet({ project_id: await cli.project(), network_id }),
    ),
    networkCreate,
    deleteCommand(networks, async (cli, network_id) => {
      await cli.client.networkDelete({ project_id: await cli.project(), network_id })
      return {}
    }),
  ],
}
