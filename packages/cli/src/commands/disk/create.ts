import { type DiskCreate, diskTypes } from '@slipway/sdk'
import { command, oneOf } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { parseNumber } from '../../core/parse.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { printOne } from '../../output/print.ts'
import { snapshots } from '../snapshot/resource.ts'
import { disks, sizeOption } from './resource.ts'

interface DiskCreateInput extends WaitFlags {
  name: string
  size?: string
  location?: string
  snapshot?: string
  type?: DiskCreate['type']
  blockSize?: number
  label?: string[]
}

export const diskCreate = command<DiskCreateInput>({
  name: 'create',
  summary: 'create a disk',
  arguments: [{ syntax: '<name>', description: 'name of the disk' }],
  options: [
    { ...sizeOption, required: false },
    { flags: '--location <location>', description: 'location of the disk', complete: 'location' },
    {
      flags: '--snapshot <snapshot>',
      description: 'snapshot to create the disk from; also sets the default size and location',
      complete: 'snapshot',
    },
    { flags: '--type <type>', ...oneOf(diskTypes) },
    { flags: '--block-size <bytes>', ...oneOf(['512', '4096']), parse: parseNumber },
    labelOption,
    ...waitOptions,
  ],
  examples: [
    'slipway disk create datasets --size 500GiB --location us-east1-a',
    'slipway disk create datasets-2 --snapshot datasets-monday',
    'slipway disk create shared --size 2TiB --location us-east1-a --type shared-volume',
  ],
  async run(cli, { name, size, location, snapshot, type, blockSize, label, ...wait }) {
    const missing = snapshot ? [] : [!size && '--size', !location && '--location'].filter(Boolean)
    if (missing.length > 0) throw new UsageError(`Missing: ${missing.join(' and ')}.`)
    const body = {
      name,
      size,
      location,
      ...(snapshot && { snapshot_id: await idOf(cli, snapshots, snapshot) }),
      type,
      block_size: blockSize as DiskCreate['block_size'],
      ...(label && { labels: parseLabels(label) }),
    }
    const { operation } = await cli.client.diskCreate({ project_id: await cli.project() }, body)
    const finished = await follow(cli, `Creating ${name}`, operation, wait)
    if (finished) await printOne(cli, finished.result, disks.fields)
  },
})
