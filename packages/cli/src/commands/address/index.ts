import type { Address } from '@slipway/sdk'
import { labelCommand, renameCommand } from '../../core/annotation-commands.ts'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { addressAssign, addressUnassign } from './assign.ts'
import { addressCreate } from './create.ts'
import { addresses, listWithVms } from './resource.ts'

const kindWithLabels: Parameters<typeof labelCommand<Address>>[0] = {
  resource: addresses,
  get: async (cli, address_id) => cli.client.addressGet({ project_id: await cli.project(), address_id }),
  change: async (cli, address_id, { name, labels }) =>
    cli.client.addressUpdate({ project_id: await cli.project(), address_id }, { name, labels }),
}

export const address: GroupSpec = {
  name: 'address',
  summary: 'reserved public addresses',
  commands: [
    listCommand(addresses, { list: listWithVms }),
    showCommand(addresses, async (cli, address_id) =>
      cli.client.addressGet({ project_id: await cli.project(), address_id }),
    ),
    addressCreate,
    addressAssign,
    addressUnassign,
    renameCommand(kindWithLabels),
    labelCommand(kindWithLabels),
    deleteCommand(addresses, async (cli, address_id) => {
      await cli.client.addressDelete({ project_id: await cli.project(), address_id })
      return {}
    }),
  ],
}
