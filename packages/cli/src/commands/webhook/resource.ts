import type { Webhook } from '@slipway/sdk'
import { ageColumn, idColumn, type Resource } from '../../core/resource.ts'

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
