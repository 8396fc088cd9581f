import type { Quota } from '@slipway/sdk'
import { command } from '../../../core/command.ts'
import { parsePair } from '../../../core/parse.ts'
import { printList } from '../../../output/print.ts'
import { quotaColumns } from '../../quota/resource.ts'

export const adminQuotaSet = command<{ projectId: string; quotas: string[] }>({
  name: 'set',
  summary: 'set quotas of a project, within the quotas of its organization; other quotas do not change',
  arguments: [
    { syntax: '<project>', key: 'projectId', description: 'id of the project' },
    { syntax: '<quotas...>', description: 'NAME=MAX, for example a100_gpus=16; NAME=none removes a limit' },
  ],
  examples: ['slipway admin quota set 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10 a100_gpus=16 vms=200'],
  async run(cli, { projectId, quotas }) {
    const items = quotas.map((text) => {
      const [unlimited] = /^[^=]+(?==none$)/.exec(text) ?? []
      const [name, max] = unlimited ? [unlimited, null] : parsePair(text)
      return { name: name as Quota['name'], max }
    })
    const changed = await cli.operator.adminQuotaSet({ project_id: projectId, items })
    await printList(cli, changed.items, quotaColumns, 'adminQuotaSet')
  },
})
