import type { ListItem, QuotaRequest } from '@slipway/sdk'
import { command, type GroupSpec } from '../../../core/command.ts'
import { listCommand } from '../../../core/generic-commands.ts'
import { parsePair } from '../../../core/parse.ts'
import { ageColumn, idColumn, type Listable } from '../../../core/resource.ts'
import { printOne } from '../../../output/print.ts'

export const quotaRequests: Listable<ListItem<'quotaRequestList'>> = {
  noun: 'quota-request',
  title: 'quota request',
  columns: [
    { name: 'name', value: (request) => request.name },
    { name: 'current', value: (request) => request.current_max, align: 'right' },
    { name: 'max', value: (request) => request.max, align: 'right' },
    { name: 'state', value: (request) => request.state, isState: true },
    { name: 'reason', value: (request) => request.reason, hideOrder: 3 },
    { name: 'note', value: (request) => request.note, hideOrder: 2 },
    ageColumn,
    { ...idColumn, isExtra: false },
  ],
  route: 'quotaRequestList',
  list: async (cli) => cli.client.collect('quotaRequestList', { organization_id: await cli.organization() }),
}

const create = command<{ quota: string; reason: string }>({
  name: 'create',
  summary: 'request a higher quota from the operators',
  details: 'Requires the role admin or owner. Each quota can have one open request.',
  arguments: [{ syntax: '<quota>', description: 'NAME=MAX, for example a100_gpus=32' }],
  options: [{ flags: '--reason <reason>', description: 'why you need the higher quota', required: true }],
  examples: ['slipway org quota-request create a100_gpus=32 --reason "Training run in December"'],
  async run(cli, { quota, reason }) {
    const [name, max] = parsePair(quota)
    const target = { organization_id: await cli.organization() }
    const body = { name: name as QuotaRequest['name'], max, reason }
    await printOne(cli, await cli.client.quotaRequestCreate(target, body))
    cli.note('The operators have been notified. `slipway org quota-request list` shows their decision.')
  },
})

const withdraw = command<{ request: string }>({
  name: 'withdraw',
  summary: 'withdraw an open quota request',
  arguments: [{ syntax: '<request>', description: 'id of the quota request' }],
  examples: ['slipway org quota-request withdraw 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'],
  async run(cli, { request }) {
    await cli.client.quotaRequestDelete({
      organization_id: await cli.organization(),
      quota_request_id: request,
    })
    cli.note('Withdrew the quota request.')
  },
})

export const orgQuotaRequest: GroupSpec = {
  name: 'quota-request',
  summary: 'requests for higher quotas',
  commands: [listCommand(quotaRequests, { group: 'org' }), create, withdraw],
}
