import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { diskAttach } from './attach.ts'
import { diskCreate } from './create.ts'
import { diskDetach } from './detach.ts'
import { diskResize } from './resize.ts'
import { disks, disksWithNames } from './resource.ts'

export const disk: GroupSpec = {
  name: 'disk',
  summary: 'persistent disks and shared volumes',
  commands: [
    diskCreate,
    listCommand(disks, { list: disksWithNames }),
    showCommand(disks, async (cli, disk_id) =>
      cli.client.diskGet({ project_id: await cli.project(), disk_id }),
    ),
    diskResize,
    diskAttach,
    diskDetach,
    deleteCommand(
      disks,
      async (cli, disk_id) => cli.client.diskDelete({ project_id: await cli.project(), disk_id }),
      { loses: 'Everything on it is lost.', isOperation: true },
    ),
  ],
}
