import type { Disk } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import type { OptionSpec } from '../../core/command.ts'
import { labelsColumn, labelsText } from '../../core/labels.ts'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'
import { ageOf } from '../../output/text.ts'
import { vms } from '../vm/resource.ts'

export const disks: Resource<Disk> = {
  noun: 'disk',
  title: 'disk',
  example: 'datasets',
  otherExample: 'checkpoints',
  columns: [
    { name: 'name', value: (disk) => disk.name },
    { name: 'size', value: (disk) => disk.size, align: 'right' },
    { name: 'type', value: (disk) => disk.type },
    { name: 'state', value: (disk) => disk.state, isState: true },
    { name: 'location', value: (disk) => disk.location, hideOrder: 2 },
    { name: 'attached_to', value: (disk) => disk.attached_to.map(({ vm_id }) => vm_id).join(',') },
    ageColumn,
    idColumn,
    labelsColumn,
  ],
  route: 'diskList',
  list: async (cli, filter) => cli.client.collect('diskList', { project_id: await cli.project(), ...filter }),
  named: ownName,
  fields: (disk) => [
    ['Name', disk.name],
    ['Id', disk.id],
    ['State', disk.state],
    ['Type', disk.type],
    ['Size', disk.size],
    ['Block size', String(disk.block_size || '-')],
    ['Location', disk.location],
    ['Attached to', attachments(disk)],
    ['Labels', labelsText(disk.labels) || '-'],
    ['Protected', disk.deletion_protection ? 'from deletion' : 'no'],
    ['Created', `${disk.created_at} (${ageOf(disk.created_at)} ago)`],
  ],
}

export const sizeOption: OptionSpec = {
  flags: '--size <size>',
  description: 'size, for example 500GiB or 2TiB',
  required: true,
}

/** Lists disks. In a table, the VMs of each disk are shown by name; other formats have their ids. */
export async function disksWithNames(cli: Cli, { selector }: { selector?: string }): Promise<Disk[]> {
  const found = await disks.list(cli, { label_selector: selector })
  const isAttached = found.some(({ attached_to }) => attached_to.length > 0)
  if (cli.format.kind !== 'table' || !isAttached) return found
  const names = new Map((await vms.list(cli)).map(({ id, name }) => [id, name]))
  return found.map((disk) => ({
    ...disk,
    attached_to: disk.attached_to.map((attachment) => ({
      ...attachment,
      vm_id: names.get(attachment.vm_id) ?? attachment.vm_id,
    })),
  }))
}

function attachments({ attached_to }: Disk): string {
  const lines = attached_to.map(
    ({ vm_id, mode, vm_deleted }) =>
      `${vm_id} ${mode}${vm_deleted ? ' (deleted while its host is down)' : ''}`,
  )
  return lines.join('\n') || '-'
}
