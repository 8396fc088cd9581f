import { eventTypes } from '@slipway/contract/event-types'
import type { Webhook } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import type { OptionSpec } from '../../core/command.ts'
import { ageColumn, idColumn, idOf, type Resource } from '../../core/resource.ts'

/** Returns `failing` for an active webhook whose receiver rejects deliveries. */
const stateOf = ({ state, failing_since }: Webhook) =>
  state === 'active' && failing_since ? 'failing' : state

export const webhooks: Resource<Webhook> = {
  noun: 'webhook',
  title: 'webhook',
  example: 'https://hooks.example.com/slipway',
  otherExample: 'https://ci.example.com/hooks',
  reference: 'URL or id of the webhook',
  columns: [
    { name: 'url', value: (webhook) => webhook.url },
    { name: 'events', value: (webhook) => webhook.event_types.join(',') || 'all' },
    { name: 'state', value: stateOf, isState: true },
    ageColumn,
    idColumn,
  ],
  route: 'webhookList',
  list: async (cli) => cli.client.collect('webhookList', { project_id: await cli.project() }),
  named: (webhook) => ({ id: webhook.id, name: webhook.url }),
}

/** Event patterns: `*`, one pattern per resource such as `vm.*`, and each event type. */
const eventPatterns = ['*', ...new Set(eventTypes.map((type) => `${type.split('.')[0]}.*`)), ...eventTypes]

export const eventsOption: OptionSpec = {
  flags: '--events <types>',
  description: "only these event types, for example 'vm.*,operation.failed'",
  values: eventPatterns,
  isList: true,
}

/** Returns the path parameters of a webhook. */
export const webhookTarget = async (cli: Cli, ref: string) => ({
  project_id: await cli.project(),
  webhook_id: await idOf(cli, webhooks, ref),
})
