import { command } from '../../core/command.ts'
import { refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { webhooks, webhookTarget } from './resource.ts'

export const webhookRotateSecret = command<{ ref: string }>({
  name: 'rotate-secret',
  summary: 'replace the secret; deliveries are signed with both secrets for one day',
  arguments: [refArgument(webhooks)],
  examples: ['slipway webhook rotate-secret https://hooks.example.com/slipway'],
  async run(cli, { ref }) {
    await printOne(cli, await cli.client.webhookRotateSecret(await webhookTarget(cli, ref)))
  },
})
