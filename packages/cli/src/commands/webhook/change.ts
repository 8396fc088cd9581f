import { command } from '../../core/command.ts'
import { refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { eventsOption, webhooks, webhookTarget } from './resource.ts'

export const webhookChange = command<{ ref: string; url?: string; events?: string[] }>({
  name: 'change',
  summary: 'change the URL or the events of a webhook',
  arguments: [refArgument(webhooks)],
  options: [{ flags: '--url <url>', description: 'new URL' }, eventsOption],
  examples: ['slipway webhook change https://hooks.example.com/slipway --events vm.running'],
  async run(cli, { ref, url, events }) {
    const body = { url, event_types: events }
    await printOne(cli, await cli.client.webhookUpdate(await webhookTarget(cli, ref), body))
  },
})
