import type { ListItem } from '@slipway/sdk'
import { type AnyCommand, command, type GroupSpec, oneOf } from '../../core/command.ts'
import { listCommand } from '../../core/generic-commands.ts'
import type { Listable } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { quotaRequests } from '../org/quota-request/index.ts'

type AdminQuotaRequest = ListItem<'adminQuotaRequestList'>

const states = ['open', 'approved', 'rejected'] as const

const adminQuotaRequests: Listable<AdminQuotaRequest> = {
  ...quotaRequests,
  columns: [
    { name: 'organization', value: (request) => request.organization_name },
    ...quotaRequests.columns,
  ],
  route: 'adminQuotaRequestList',
  list: (cli) => cli.operator.collect('adminQuotaRequestList', {}),
}

function decision(name: 'approve' | 'reject', state: 'approved' | 'rejected', summary: string): AnyCommand {
  return command<{ request: string; note?: string }>({
    name,
    summary,
    arguments: [{ syntax: '<request>', description: 'id of the quota request' }],
    options: [{ flags: '--note <note>', description: 'explanation for the organization' }],
    examples: [`slipway admin quota-request ${name} 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10`],
    async run(cli, { request, note }) {
      const target = { quota_request_id: request }
      await printOne(cli, await cli.operator.adminQuotaRequestUpdate(target, { state, note }))
    },
  })
}

export const adminQuotaRequest: GroupSpec = {
  name: 'quota-request',
  summary: 'quota requests of all organizations',
  commands: [
    listCommand<AdminQuotaRequest, { state: (typeof states)[number] | 'all' }>(adminQuotaRequests, {
      group: 'admin',
      options: [{ flags: '--state <state>', ...oneOf([...states, 'all']), default: 'open' }],
      list: (cli, { state }) =>
        cli.operator.collect('adminQuotaRequestList', state === 'all' ? {} : { state }),
      examples: ['slipway admin quota-request list --state all'],
    }),
    decision('approve', 'approved', 'approve a request and raise the quota'),
    decision('reject', 'rejected', 'reject a request'),
  ],
}
