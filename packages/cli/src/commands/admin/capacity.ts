import type { ListItem } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { type Column, printList } from '../../output/print.ts'

const columns: Column<ListItem<'adminCapacityList'>>[] = [
  { name: 'location', value: (row) => row.location },
  { name: 'family', value: (row) => row.family },
  { name: 'total', value: (row) => row.total, align: 'right' },
  { name: 'free', value: (row) => row.free, align: 'right' },
  { name: 'unavailable', value: (row) => row.unavailable, align: 'right' },
  { name: 'claimed', value: (row) => row.claimed, align: 'right' },
  { name: 'quarantined', value: (row) => row.quarantined, align: 'right' },
  { name: 'held', value: (row) => row.held, align: 'right' },
  { name: 'largest_type', value: (row) => row.largest_type },
]

export const adminCapacity = command({
  name: 'capacity',
  summary: 'show the number of GPUs by location and family',
  columns,
  examples: ['slipway admin capacity', 'slipway admin capacity -o json'],
  async run(cli) {
    await printList(cli, await cli.operator.collect('adminCapacityList', {}), columns, 'adminCapacityList')
  },
})
