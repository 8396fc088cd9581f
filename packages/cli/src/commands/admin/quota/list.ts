import { command } from '../../../core/command.ts'
import { printList } from '../../../output/print.ts'
import { quotaColumns } from '../../quota/resource.ts'

export const adminQuotaList = command<{ projectId: string }>({
  name: 'list',
  summary: 'list the quotas of a project',
  arguments: [{ syntax: '<project>', key: 'projectId', description: 'id of the project' }],
  columns: quotaColumns,
  examples: ['slipway admin quota list 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'],
  async run(cli, { projectId }) {
    await printList(
      cli,
      await cli.operator.collect('adminQuotaList', { project_id: projectId }),
      quotaColumns,
      'adminQuotaList',
    )
  },
})
