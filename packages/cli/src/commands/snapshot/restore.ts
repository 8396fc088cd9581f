import { command } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { disks } from '../disk/resource.ts'
import { snapshots } from './resource.ts'

interface RestoreInput extends WaitFlags {
  ref: string
  name: string
  size?: string
  label?: string[]
}

export const snapshotRestore = command<RestoreInput>({
  name: 'restore',
  summary: 'create a disk from a snapshot',
  arguments: [refArgument(snapshots), { syntax: '<name>', description: 'name of the new disk' }],
  options: [
    { flags: '--size <size>', description: 'size of the disk (default: the size of the snapshot)' },
    labelOption,
    ...waitOptions,
  ],
  examples: [
    'slipway snapshot restore datasets-monday datasets-2',
    'slipway snapshot restore datasets-monday datasets-2 --size 1TiB',
  ],
  async run(cli, { ref, name, size, label, ...wait }) {
    const body = {
      name,
      snapshot_id: await idOf(cli, snapshots, ref),
      ...(size && { size }),
      ...(label && { labels: parseLabels(label) }),
    }
    const { operation } = await cli.client.diskCreate({ project_id: await cli.project() }, body)
    const finished = await follow(cli, `Creating ${name}`, operation, wait)
    if (finished) await printOne(cli, finished.result, disks.fields)
  },
})
