import { type DeliveryState, deliveryStates } from '@slipway/contract/states'
import type { ListItem } from '@slipway/sdk'
import { command, oneOf } from '../../core/command.ts'
import { refArgument } from '../../core/resource.ts'
import { type Column, printList } from '../../output/print.ts'
import { ageOf } from '../../output/text.ts'
import { webhooks, webhookTarget } from './resource.ts'

const columns: Column<ListItem<'webhookDeliveryList'>>[] = [
  { name: 'id', value: (delivery) => delivery.id },
  { name: 'event', value: (delivery) => delivery.event_type },
  { name: 'resource', value: (delivery) => delivery.resource_name || delivery.resource_id, hideOrder: 2 },
  { name: 'state', value: (delivery) => delivery.state, isState: true },
  { name: 'attempts', value: (delivery) => delivery.attempts, align: 'right' },
  { name: 'status', value: (delivery) => delivery.response_status || delivery.error },
  { name: 'age', value: (delivery) => ageOf(delivery.created_at), align: 'right', hideOrder: 1 },
]

export const webhookDeliveries = command<{ ref: string; state?: DeliveryState }>({
  name: 'deliveries',
  summary: 'list deliveries of a webhook',
  arguments: [refArgument(webhooks)],
  options: [{ flags: '--state <state>', ...oneOf(deliveryStates) }],
  columns,
  examples: [
    'slipway webhook deliveries https://hooks.example.com/slipway',
    'slipway webhook deliveries https://hooks.example.com/slipway --state failed',
  ],
  async run(cli, { ref, state }) {
    const target = await webhookTarget(cli, ref)
    await printList(
      cli,
      await cli.client.collect('webhookDeliveryList', { ...target, ...(state && { state }) }),
      columns,
      'webhookDeliveryList',
    )
  },
})
