import type { Network } from '@slipway/sdk'
import { labelCommand, renameCommand } from '../../core/annotation-commands.ts'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { networkCreate } from './create.ts'
import { networks } from './resource.ts'

const kindWithLabels: Parameters<typeof labelCommand<Network>>[0] = {
  resource: networks,
  get: async (cli, network_id) => cli.client.networkGet({ project_id: await cli.project(), network_id }),
  change: async (cli, network_id, { name, labels }) =>
    cli.client.networkUpdate({ project_id: await cli.project(), network_id }, { name, labels }),
}

export const network: GroupSpec = {
  name: 'network',
  summary: 'private networks',
  commands: [
    listCommand(networks),
    showCommand(networks, async (cli, network_id) =>
      cli.client.networkGet({ project_id: await cli.project(), network_id }),
    ),
    networkCreate,
    renameCommand(kindWithLabels),
    labelCommand(kindWithLabels),
    deleteCommand(networks, async (cli, network_id) => {
      await cli.client.networkDelete({ project_id: await cli.project(), network_id })
      return {}
    }),
  ],
}
