import type { Disk } from '@slipway/sdk'
import { labelCommand, protectCommands, renameCommand } from '../../core/annotation-commands.ts'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { selectorOption } from '../../core/labels.ts'
import { diskAttach } from './attach.ts'
import { diskCreate } from './create.ts'
import { diskDetach } from './detach.ts'
import { diskResize } from './resize.ts'
import { disks, disksWithNames } from './resource.ts'

const kindWithLabels: Parameters<typeof labelCommand<Disk>>[0] = {
  resource: disks,
  get: async (cli, disk_id) => cli.client.diskGet({ project_id: await cli.project(), disk_id }),
  change: async (cli, disk_id, change) =>
    cli.client.diskUpdate({ project_id: await cli.project(), disk_id }, change),
}

export const disk: GroupSpec = {
  name: 'disk',
  summary: 'persistent disks and shared volumes',
  commands: [
    diskCreate,
    listCommand(disks, { options: [selectorOption], list: disksWithNames }),
    showCommand(disks, async (cli, disk_id) =>
      cli.client.diskGet({ project_id: await cli.project(), disk_id }),
    ),
    diskResize,
    diskAttach,
    diskDetach,
    renameCommand(kindWithLabels),
    labelCommand(kindWithLabels),
    ...protectCommands(kindWithLabels),
    deleteCommand(
      disks,
      async (cli, disk_id) => cli.client.diskDelete({ project_id: await cli.project(), disk_id }),
      { loses: 'All data will be lost.', isOperation: true },
    ),
  ],
}
