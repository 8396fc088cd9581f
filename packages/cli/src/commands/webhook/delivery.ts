import { command } from '../../core/command.ts'
import { refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { webhooks, webhookTarget } from './resource.ts'

export const webhookDelivery = command<{ ref: string; delivery: string }>({
  name: 'delivery',
  summary: 'show a delivery with its payload and the response',
  arguments: [refArgument(webhooks), { syntax: '<delivery>', description: 'id of the delivery' }],
  examples: [
    'slipway webhook delivery https://hooks.example.com/slipway 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10',
  ],
  async run(cli, { ref, delivery }) {
    const target = { ...(await webhookTarget(cli, ref)), delivery_id: delivery }
    await printOne(cli, await cli.client.webhookDeliveryGet(target))
  },
})
