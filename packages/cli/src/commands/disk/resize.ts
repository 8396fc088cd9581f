import { command } from '../../core/command.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { disks, sizeOption } from './resource.ts'

export const diskResize = command<{ ref: string; size: string } & WaitFlags>({
  name: 'resize',
  summary: 'make a disk larger',
  arguments: [refArgument(disks)],
  options: [sizeOption, ...waitOptions],
  examples: ['slipway disk resize datasets --size 1TiB'],
  async run(cli, { ref, size, ...wait }) {
    const target = { project_id: await cli.project(), disk_id: await idOf(cli, disks, ref) }
    const { operation } = await cli.client.diskUpdate(target, { size })
    const finished = await follow(cli, `Resizing ${ref}`, operation, wait)
    if (finished) await printOne(cli, finished.result, disks.fields)
  },
})
