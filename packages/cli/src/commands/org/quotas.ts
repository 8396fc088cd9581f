import { command } from '../../core/command.ts'
import { printList } from '../../output/print.ts'
import { quotaColumns, shareColumn } from '../quota/resource.ts'

export const orgQuotas = command<{ ref?: string }>({
  name: 'quotas',
  summary: 'list the quotas of the organization and their usage',
  arguments: [
    {
      syntax: '[organization]',
      key: 'ref',
      description: 'name or id of the organization',
      complete: 'org',
    },
  ],
  columns: [...quotaColumns, shareColumn],
  examples: ['slipway org quotas', 'slipway org quotas harbour-labs -o json'],
  async run(cli, { ref }) {
    const organization_id = await cli.organization(ref)
    const quotas = await cli.client.collect('organizationQuotaList', { organization_id })
    await printList(cli, quotas, [...quotaColumns, shareColumn], 'organizationQuotaList')
  },
})
