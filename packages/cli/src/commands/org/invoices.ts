import type { ListItem } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { type Column, printList } from '../../output/print.ts'
import { usd } from '../../output/text.ts'

const columns: Column<ListItem<'organizationInvoices'>>[] = [
  { name: 'from', value: (invoice) => invoice.period_start.slice(0, 10) },
  { name: 'to', value: (invoice) => invoice.period_end.slice(0, 10) },
  { name: 'state', value: (invoice) => invoice.state, isState: true },
  { name: 'lines', value: (invoice) => invoice.lines.length, align: 'right' },
  { name: '$', value: (invoice) => usd(invoice.usd), align: 'right' },
  { name: 'id', value: (invoice) => invoice.id, hideOrder: 1 },
]

export const orgInvoices = command<{ ref?: string }>({
  name: 'invoices',
  summary: 'list invoices',
  arguments: [
    {
      syntax: '[organization]',
      key: 'ref',
      description: 'name or id of the organization',
      complete: 'org',
    },
  ],
  columns,
  examples: ['slipway org invoices', 'slipway org invoices harbour-labs -o json'],
  async run(cli, { ref }) {
    const organization_id = await cli.organization(ref)
    await printList(
      cli,
      await cli.client.collect('organizationInvoices', { organization_id }),
      columns,
      'organizationInvoices',
    )
  },
})
