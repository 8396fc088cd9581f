import type { ListItem } from '@slipway/sdk'
import { command, type GroupSpec } from '../../core/command.ts'
import { type Column, printList } from '../../output/print.ts'

const columns: Column<ListItem<'adminLocationList'>>[] = [
  { name: 'name', value: (location) => location.name },
  { name: 'engine', value: (location) => location.engine },
  { name: 'storage', value: (location) => location.storage },
  { name: 'public_ipv4', value: (location) => location.public_ipv4 },
  { name: 'description', value: (location) => location.description, hideOrder: 1 },
]

const adminLocationList = command({
  name: 'list',
  summary: 'list locations',
  columns,
  examples: ['slipway admin location list'],
  async run(cli) {
    await printList(cli, await cli.operator.collect('adminLocationList', {}), columns, 'adminLocationList')
  },
})

export const adminLocation: GroupSpec = {
  name: 'location',
  summary: 'locations and their engines',
  commands: [adminLocationList],
}
