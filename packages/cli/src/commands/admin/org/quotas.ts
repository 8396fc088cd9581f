import type { OrganizationQuotaName } from '@slipway/sdk'
import { command } from '../../../core/command.ts'
import { parsePair } from '../../../core/parse.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { printList } from '../../../output/print.ts'
import { quotaColumns } from '../../quota/resource.ts'
import { adminOrganizations } from './resource.ts'

export const adminOrgQuotas = command<{ ref: string; quotas: string[] }>({
  name: 'quotas',
  summary: 'list or change the quotas of an organization',
  arguments: [
    refArgument(adminOrganizations),
    { syntax: '[quotas...]', description: 'NAME=MAX, for example a100_gpus=16' },
  ],
  columns: quotaColumns,
  examples: [
    'slipway admin org quotas harbour-labs',
    'slipway admin org quotas harbour-labs a100_gpus=16 projects=50',
  ],
  async run(cli, { ref, quotas }) {
    const organization_id = await idOf(cli, adminOrganizations, ref)
    const items = quotas.map(parsePair).map(([name, max]) => ({ name: name as OrganizationQuotaName, max }))
    const response =
      items.length > 0
        ? await cli.operator.adminOrganizationQuotaSet({ organization_id }, { items })
        : await cli.operator.adminOrganizationQuotaList({ organization_id })
    await printList(cli, response.items, quotaColumns, 'adminOrganizationQuotaList')
  },
})
