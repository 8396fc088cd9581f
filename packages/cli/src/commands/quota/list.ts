import { command } from '../../core/command.ts'
import { printList } from '../../output/print.ts'
import { bar } from '../../output/text.ts'
import { quotaColumns } from './resource.ts'

export const quotaList = command({
  name: 'list',
  summary: 'list quotas and what is used of them',
  examples: ['slipway quota list', 'slipway quota list -o columns=name,available'],
  async run(cli) {
    await printList(cli, await cli.client.collect('quotaList', { project_id: await cli.project() }), [
      ...quotaColumns,
      {
        name: 'share',
        value: (quota) => bar(quota.max > 0 ? quota.used / quota.max : 0, 20) || ' ',
        spare: 1,
      },
    ])
  },
})
