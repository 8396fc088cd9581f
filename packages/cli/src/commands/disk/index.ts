import type { Disk, DiskCreate, Vm } from '@slipway/sdk'
import { command, type GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { parseNumber } from '../../core/parse.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { vms } from '../vm/resource.ts'
import { disks } from './resource.ts'

interface CreateInput extends WaitFlags {
  name: string
  size: string
  location: string
  type?: DiskCreate['type']
  blockSize?: number
}

interface AttachInput extends WaitFlags {
  ref: string
  vm: string
  readOnly?: boolean
}

const vmArgument = { syntax: '<vm>', description: 'name or id of the VM', complete: 'vm' } as const
const size = { flags: '--size <size>', description: 'like 500GiB or 2TiB', required: true } as const

export const disk: GroupSpec = {
  name: 'disk',
  summary: 'persistent disks and shared volumes',
  commands: [
    command<CreateInput>({
      name: 'create',
      summary: 'create a disk',
      arguments: [{ syntax: '<name>', description: 'name of the disk' }],
      options: [
        size,
        { flags: '--location <location>', description: 'where', complete: 'location', required: true },
        {
          flags: '--type <type>',
          description: 'persistent-ssd or shared-volume',
          complete: ['persistent-ssd', 'shared-volume'],
        },
        {
          flags: '--block-size <bytes>',
          description: '512 or 4096',
          complete: ['512', '4096'],
          parse: parseNumber,
        },
        ...waitOptions,
      ],
      examples: [
        'slipway disk create datasets --size 500GiB --location us-east1-a',
        'slipway disk create shared --size 2TiB --location us-east1-a --type shared-volume',
      ],
      async run(cli, { name, size, location, type, blockSize, ...wait }) {
        const body = { name, size, location, type, block_size: blockSize as DiskCreate['block_size'] }
        const { operation } = await cli.client.diskCreate({ project_id: await cli.project() }, body)
        const finished = await follow<Disk>(cli, `Creating ${name}`, operation, wait)
        if (finished) await printOne(cli, finished.result, disks.fields)
      },
    }),
    listCommand(disks),
    showCommand(disks, async (cli, disk_id) =>
      cli.client.diskGet({ project_id: await cli.project(), disk_id }),
    ),
    command<{ ref: string; size: string } & WaitFlags>({
      name: 'resize',
      summary: 'grow a disk',
      arguments: [refArgument(disks)],
      options: [size, ...waitOptions],
      examples: ['slipway disk resize datasets --size 1TiB'],
      async run(cli, { ref, size, ...wait }) {
        const target = { project_id: await cli.project(), disk_id: await idOf(cli, disks, ref) }
        const { operation } = await cli.client.diskUpdate(target, { size })
        const finished = await follow<Disk>(cli, `Growing ${ref}`, operation, wait)
        if (finished) await printOne(cli, finished.result, disks.fields)
      },
    }),
    command<AttachInput>({
      name: 'attach',
      summary: 'attach a disk to a VM',
      arguments: [refArgument(disks), vmArgument],
      options: [{ flags: '--read-only', description: 'so that several VMs can have it' }, ...waitOptions],
      examples: ['slipway disk attach datasets train-7', 'slipway disk attach datasets train-7 --read-only'],
      async run(cli, { ref, vm, readOnly, ...wait }) {
        const [disk_id, vm_id] = await Promise.all([idOf(cli, disks, ref), idOf(cli, vms, vm)])
        const { operation } = await cli.client.vmAttachDisks(
          { project_id: await cli.project(), vm_id },
          {
            attach_disks: [{ disk_id, attachment_type: 'data', mode: readOnly ? 'read-only' : 'read-write' }],
          },
        )
        await follow<Vm>(cli, `Attaching ${ref} to ${vm}`, operation, wait)
      },
    }),
    command<AttachInput>({
      name: 'detach',
      summary: 'detach a disk from a VM',
      arguments: [refArgument(disks), vmArgument],
      options: waitOptions,
      examples: ['slipway disk detach datasets train-7'],
      async run(cli, { ref, vm, ...wait }) {
        const [disk_id, vm_id] = await Promise.all([idOf(cli, disks, ref), idOf(cli, vms, vm)])
        const { operation } = await cli.client.vmDetachDisks(
          { project_id: await cli.project(), vm_id },
          { detach_disks: [disk_id] },
        )
        await follow<Vm>(cli, `Detaching ${ref} from ${vm}`, operation, wait)
      },
    }),
    deleteCommand(
      disks,
      async (cli, disk_id) => cli.client.diskDelete({ project_id: await cli.project(), disk_id }),
      {
        loses: 'Everything on it is lost.',
        isOperation: true,
      },
    ),
  ],
}
