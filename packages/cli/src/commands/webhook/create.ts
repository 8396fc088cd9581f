import { command } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'
import { eventsOption } from './resource.ts'

export const webhookCreate = command<{ url: string; events?: string[] }>({
  name: 'create',
  summary: 'create a webhook',
  arguments: [{ syntax: '<url>', description: 'URL that receives the events' }],
  options: [eventsOption],
  examples: ['slipway webhook create https://hooks.example.com/slipway --events vm.running,operation.failed'],
  async run(cli, { url, events }) {
    const body = { url, event_types: events }
    await printOne(cli, await cli.client.webhookCreate({ project_id: await cli.project() }, body))
    cli.note('Save the secret. It is shown only once.')
  },
})
