import { command } from '../../core/command.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { vms } from '../vm/resource.ts'
import { disks } from './resource.ts'

interface AttachInput extends WaitFlags {
  ref: string
  vm: string
  readOnly?: boolean
}

export const diskAttach = command<AttachInput>({
  name: 'attach',
  summary: 'attach a disk to a VM',
  arguments: [refArgument(disks), { ...refArgument(vms), key: 'vm' }],
  options: [
    { flags: '--read-only', description: 'attach read-only, so that several VMs can use the disk' },
    ...waitOptions,
  ],
  examples: ['slipway disk attach datasets train-7', 'slipway disk attach datasets train-7 --read-only'],
  async run(cli, { ref, vm, readOnly, ...wait }) {
    const [disk_id, vm_id] = await Promise.all([idOf(cli, disks, ref), idOf(cli, vms, vm)])
    const mode = readOnly ? 'read-only' : 'read-write'
    const { operation } = await cli.client.vmAttachDisks(
      { project_id: await cli.project(), vm_id },
      { attach_disks: [{ disk_id, attachment_type: 'data', mode }] },
    )
    await follow(cli, `Attaching ${ref} to ${vm}`, operation, wait)
  },
})
