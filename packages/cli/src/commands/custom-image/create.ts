import { command } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { printOne } from '../../output/print.ts'
import { disks } from '../disk/resource.ts'
import { snapshots } from '../snapshot/resource.ts'
import { vms } from '../vm/resource.ts'
import { customImages } from './resource.ts'

interface CustomImageCreateInput extends WaitFlags {
  name: string
  vm?: string
  disk?: string
  snapshot?: string
  allowCrashConsistent?: boolean
  description?: string
  tag?: string[]
  label?: string[]
}

export const customImageCreate = command<CustomImageCreateInput>({
  name: 'create',
  summary: 'create a custom image from a VM, a disk or a snapshot',
  details:
    'A stopped VM gives the most consistent image. A running VM needs the QEMU guest agent, unless you use ' +
    '--allow-crash-consistent: the image is then like a disk after a power failure. New VMs get their own host key, machine id and SSH keys; everything else is copied.',
  arguments: [{ syntax: '<name>', description: 'name of the image, optionally NAME:VERSION' }],
  options: [
    { flags: '--vm <vm>', description: 'VM whose OS disk is copied', complete: 'vm' },
    { flags: '--disk <disk>', description: 'disk with an operating system', complete: 'disk' },
    {
      flags: '--snapshot <snapshot>',
      description: 'snapshot of a disk with an operating system',
      complete: 'snapshot',
    },
    { flags: '--allow-crash-consistent', description: 'also copy a running VM that has no guest agent' },
    { flags: '--description <text>', description: 'what the image is for' },
    { flags: '--tag <tag>', description: 'word that describes the image; may be repeated', repeats: true },
    labelOption,
    ...waitOptions,
  ],
  examples: [
    'slipway custom-image create trainer:v1 --vm train-7',
    'slipway custom-image create trainer:v1 --vm train-7 --allow-crash-consistent',
    'slipway custom-image create trainer:v1 --snapshot trainer-monday',
  ],
  async run(cli, input) {
    const { name, vm, disk, snapshot, description, tag, label } = input
    if ([vm, disk, snapshot].filter(Boolean).length !== 1)
      throw new UsageError('Use exactly one of --vm, --disk and --snapshot.')
    const body = {
      name,
      ...(vm && { vm_id: await idOf(cli, vms, vm) }),
      ...(disk && { disk_id: await idOf(cli, disks, disk) }),
      ...(snapshot && { snapshot_id: await idOf(cli, snapshots, snapshot) }),
      ...(input.allowCrashConsistent && { allow_crash_consistent: true }),
      ...(description && { description }),
      ...(tag && { tags: tag }),
      ...(label && { labels: parseLabels(label) }),
    }
    const { operation } = await cli.client.customImageCreate({ project_id: await cli.project() }, body)
    const finished = await follow(cli, `Creating ${name}`, operation, input)
    if (finished) await printOne(cli, finished.result, customImages.fields)
  },
})
