import { command, type GroupSpec } from '../../core/command.ts'
import { listCommand, showCommand } from '../../core/generic-commands.ts'
import { printList } from '../../output/print.ts'
import { usd } from '../../output/text.ts'
import { organizations } from './resource.ts'

export const org: GroupSpec = {
  name: 'org',
  summary: 'organizations and their invoices',
  commands: [
    listCommand(organizations),
    showCommand(organizations, (cli, organization_id) => cli.client.organizationGet({ organization_id })),
    command<{ ref?: string }>({
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
      examples: ['slipway org invoices', 'slipway org invoices harbour-labs -o json'],
      async run(cli, { ref }) {
        const organization_id = await cli.organization(ref)
        await printList(cli, await cli.client.collect('organizationInvoices', { organization_id }), [
          { name: 'from', value: (invoice) => invoice.period_start.slice(0, 10) },
          { name: 'to', value: (invoice) => invoice.period_end.slice(0, 10) },
          { name: 'state', value: (invoice) => invoice.state, isState: true },
          { name: 'lines', value: (invoice) => invoice.lines.length, align: 'right' },
          { name: '$', value: (invoice) => usd(invoice.usd), align: 'right' },
          { name: 'id', value: (invoice) => invoice.id, spare: 1 },
        ])
      },
    }),
  ],
}
