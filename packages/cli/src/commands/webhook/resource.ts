import type { Webhook } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import type { OptionSpec } from '../../core/command.ts'
import { parseList } from '../../core/parse.ts'
import { ageColumn, idColumn, idOf, type Resource } from '../../core/resource.ts'

export const webhooks: Resource<Webhook> = {
  noun: 'webhook',
  title: 'webhook',
  example: 'https://hooks.example.com/slipway',
  columns: [
    { name: 'url', value: (webhook) => webhook.url },
    { name: 'events', value: (webhook) => webhook.event_types.join(',') || 'all' },
    { name: 'state', value: (webhook) => webhook.state, isState: true },
    ageColumn,
    idColumn,
  ],
  list: async (cli) => cli.client.collect('webhookList', { project_id: await cli.project() }),
  named: (webhook) => ({ id: webhook.id, name: webhook.url }),
}

export const eventsOption: OptionSpec = {
  flags: '--events <types>',
  description: 'only these: vm.*,operation.failed',
  parse: parseList,
}

/** Returns the parameters of a route about one webhook. */
export const webhookTarget = async (cli: Cli, ref: string) => ({
  project_id: await cli.project(),
  webhook_id: await idOf(cli, webhooks, ref),
})
