import { command } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { disks } from '../disk/resource.ts'
import { snapshots } from './resource.ts'

interface SnapshotCreateInput extends WaitFlags {
  name: string
  disk: string
  requireFrozen?: boolean
  label?: string[]
}

export const snapshotCreate = command<SnapshotCreateInput>({
  name: 'create',
  summary: 'create a snapshot of a disk',
  arguments: [{ syntax: '<name>', description: 'name of the snapshot' }],
  options: [
    { flags: '--disk <disk>', description: 'disk to copy', complete: 'disk', required: true },
    {
      flags: '--require-frozen',
      description: 'fail if a running VM writes to the disk and cannot freeze its file systems',
    },
    labelOption,
    ...waitOptions,
  ],
  examples: [
    'slipway snapshot create datasets-monday --disk datasets',
    'slipway snapshot create datasets-monday --disk datasets --require-frozen',
  ],
  async run(cli, { name, disk, requireFrozen, label, ...wait }) {
    const body = {
      name,
      disk_id: await idOf(cli, disks, disk),
      ...(requireFrozen && { require_frozen: true }),
      ...(label && { labels: parseLabels(label) }),
    }
    const { operation } = await cli.client.snapshotCreate({ project_id: await cli.project() }, body)
    const finished = await follow(cli, `Creating ${name}`, operation, wait)
    if (finished) await printOne(cli, finished.result, snapshots.fields)
  },
})
