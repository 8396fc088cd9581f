import { command } from '../../core/command.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { vms } from '../vm/resource.ts'
import { disks } from './resource.ts'

export const diskDetach = command<{ ref: string; vm: string } & WaitFlags>({
  name: 'detach',
  summary: 'detach a disk from a VM',
  arguments: [refArgument(disks), { ...refArgument(vms), key: 'vm' }],
  options: waitOptions,
  examples: ['slipway disk detach datasets train-7'],
  async run(cli, { ref, vm, ...wait }) {
    const [disk_id, vm_id] = await Promise.all([idOf(cli, disks, ref), idOf(cli, vms, vm)])
    const { operation } = await cli.client.vmDetachDisks(
      { project_id: await cli.project(), vm_id },
      { detach_disks: [disk_id] },
    )
    await follow(cli, `Detaching ${ref} from ${vm}`, operation, wait)
  },
})
