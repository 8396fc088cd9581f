import type { GroupSpec } from '../../../core/command.ts'
import { deleteCommand, showCommand } from '../../../core/generic-commands.ts'
import { adminHostCreate } from './create.ts'
import { adminHostDrain } from './drain.ts'
import { adminHostForget } from './forget.ts'
import { adminHostList } from './list.ts'
import { adminHostMaintenance, adminHostNote } from './maintenance.ts'
import { hosts } from './resource.ts'
import { adminHostCordon, adminHostUncordon } from './schedule.ts'

export const adminHost: GroupSpec = {
  name: 'host',
  summary: 'GPU hosts',
  commands: [
    adminHostList,
    showCommand(hosts, (cli, host_id) => cli.operator.adminHostGet({ host_id }), { group: 'admin' }),
    adminHostCreate,
    adminHostUncordon,
    adminHostCordon,
    adminHostDrain,
    adminHostMaintenance,
    adminHostNote,
    adminHostForget,
    deleteCommand(
      hosts,
      async (cli, host_id) => {
        await cli.operator.adminHostDelete({ host_id })
        return {}
      },
      { group: 'admin' },
    ),
  ],
}
