import { command } from '../../core/command.ts'
import { printList } from '../../output/print.ts'
import { quotaColumns, shareColumn } from './resource.ts'

export const quotaList = command({
  name: 'list',
  summary: 'list quotas and their usage',
  columns: [...quotaColumns, shareColumn],
  examples: ['slipway quota list', 'slipway quota list -o columns=name,available'],
  async run(cli) {
    const quotas = await cli.client.collect('quotaList', { project_id: await cli.project() })
    await printList(cli, quotas, [...quotaColumns, shareColumn], 'quotaList')
  },
})
