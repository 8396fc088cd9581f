import { command } from '../../core/command.ts'
import { refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { webhooks, webhookTarget } from './resource.ts'

export const webhookTest = command<{ ref: string }>({
  name: 'test',
  summary: 'send a test event',
  arguments: [refArgument(webhooks)],
  examples: ['slipway webhook test https://hooks.example.com/slipway'],
  async run(cli, { ref }) {
    await printOne(cli, await cli.client.webhookTest(await webhookTarget(cli, ref)))
  },
})
