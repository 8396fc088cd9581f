import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, showCommand } from '../../core/generic-commands.ts'
import { vmCreate } from './create.ts'
import { vmExtend } from './extend.ts'
import { vmList } from './list.ts'
import { vmLog } from './log.ts'
import { vmReset, vmStart, vmStop } from './power.ts'
import { vmResize } from './resize.ts'
import { vms } from './resource.ts'
import { vmScp } from './scp.ts'
import { vmSsh } from './ssh.ts'
import { vmTunnel } from './tunnel.ts'

export const vm: GroupSpec = {
  name: 'vm',
  summary: 'GPU virtual machines',
  commands: [
    vmCreate,
    vmList,
    showCommand(vms, async (cli, vm_id) => cli.client.vmGet({ project_id: await cli.project(), vm_id })),
    vmStart,
    vmStop,
    vmReset,
    vmResize,
    vmExtend,
    deleteCommand(
      vms,
      async (cli, vm_id) => cli.client.vmDelete({ project_id: await cli.project(), vm_id }),
      { loses: 'Its OS disk goes with it; data disks stay.', isOperation: true },
    ),
    vmLog,
    vmSsh,
    vmScp,
    vmTunnel,
  ],
}
