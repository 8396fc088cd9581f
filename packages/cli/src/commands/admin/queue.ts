import { familyNames, type ListItem } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { ageColumn } from '../../core/resource.ts'
import { type Column, printList } from '../../output/print.ts'
import { likelyTime } from '../queue/resource.ts'

const columns: Column<ListItem<'adminCapacityRequestList'>>[] = [
  { name: 'id', value: (row) => row.id },
  { name: 'organization', value: (row) => row.organization_id, hideOrder: 1 },
  { name: 'family', value: (row) => row.family },
  { name: 'gpus', value: (row) => row.gpus_wanted, align: 'right' },
  { name: 'held', value: (row) => row.gpus_held, align: 'right' },
  { name: 'state', value: (row) => row.state, isState: true },
  { name: 'position', value: (row) => row.position ?? '', align: 'right' },
  { name: 'blocked_by', value: (row) => row.blocked_by },
  { name: 'likely', value: likelyTime },
  ageColumn,
]

export const adminQueue = command<{ location?: string; family?: (typeof familyNames)[number] }>({
  name: 'queue',
  summary: 'list the capacity requests of all tenants',
  options: [
    { flags: '--location <location>', description: 'only this location', complete: 'location' },
    { flags: '--family <family>', description: 'only this GPU family', values: familyNames },
  ],
  columns,
  examples: ['slipway admin queue', 'slipway admin queue --location us-east1-a --family a100'],
  async run(cli, { location, family }) {
    const filter = { ...(location && { location }), ...(family && { family }) }
    const rows = await cli.operator.collect('adminCapacityRequestList', filter)
    await printList(cli, rows, columns, 'adminCapacityRequestList')
  },
})
