import type { Vm } from '@slipway/sdk'
import { labelCommand, protectCommands, renameCommand } from '../../core/annotation-commands.ts'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, showCommand } from '../../core/generic-commands.ts'
import { vmConsole } from './console-session.ts'
import { vmCreate } from './create.ts'
import { vmExtend } from './extend.ts'
import { vmHealth } from './health.ts'
import { vmIdle } from './idle.ts'
import { vmList } from './list.ts'
import { vmLog } from './log.ts'
import { vmMetrics } from './metrics.ts'
import { vmReplace, vmReset, vmStart, vmStop } from './power.ts'
import { vmResize } from './resize.ts'
import { vms } from './resource.ts'
import { vmScp } from './scp.ts'
import { vmSsh } from './ssh.ts'
import { vmTunnel } from './tunnel.ts'

const kindWithLabels: Parameters<typeof labelCommand<Vm>>[0] = {
  resource: vms,
  get: async (cli, vm_id) => cli.client.vmGet({ project_id: await cli.project(), vm_id }),
  change: async (cli, vm_id, change) =>
    cli.client.vmUpdate({ project_id: await cli.project(), vm_id }, change),
}

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
    vmReplace,
    vmHealth,
    vmResize,
    vmExtend,
    vmIdle,
    renameCommand(kindWithLabels),
    labelCommand(kindWithLabels),
    ...protectCommands(kindWithLabels),
    deleteCommand(
      vms,
      async (cli, vm_id) => cli.client.vmDelete({ project_id: await cli.project(), vm_id }),
      { loses: 'The OS disk of each VM will also be deleted; data disks will be kept.', isOperation: true },
    ),
    vmLog,
    vmMetrics,
    vmConsole,
    vmSsh,
    vmScp,
    vmTunnel,
  ],
}
