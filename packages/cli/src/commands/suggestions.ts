import type { Suggestion } from '@slipway/sdk'
import { command } from '../core/command.ts'
import { type Column, printList } from '../output/print.ts'

const columns: Column<Suggestion>[] = [
  { name: 'name', value: ({ name }) => name },
  { name: 'usd_per_month', value: ({ usd_per_month }) => usd_per_month.toFixed(2), align: 'right' },
  { name: 'kind', value: ({ kind }) => kind, hideOrder: 1 },
  { name: 'message', value: ({ message }) => message },
]

export const suggestions = command({
  name: 'suggestions',
  summary: 'list unused resources that cost money',
  details:
    'Shows VMs whose GPUs were idle for 24 hours, and disks that are not attached to a VM, with their cost per month of 730 hours. Nothing is stopped or deleted.',
  columns,
  examples: ['slipway suggestions', 'slipway suggestions -o json'],
  async run(cli) {
    const found = await cli.client.collect('suggestionList', { project_id: await cli.project() })
    await printList(cli, found, columns, 'suggestionList')
  },
})
