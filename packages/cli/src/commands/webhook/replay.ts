import { command } from '../../core/command.ts'
import { refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { webhooks, webhookTarget } from './resource.ts'

export const webhookReplay = command<{ ref: string; delivery: string }>({
  name: 'replay',
  summary: 'deliver an event again',
  arguments: [refArgument(webhooks), { syntax: '<delivery>', description: 'id of the delivery' }],
  examples: ['slipway webhook replay https://hooks.example.com/slipway 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'],
  async run(cli, { ref, delivery }) {
    const target = { ...(await webhookTarget(cli, ref)), delivery_id: delivery }
    await printOne(cli, await cli.client.webhookDeliveryReplay(target))
  },
})
