import { type AnyCommand, command, type GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand } from '../../core/generic-commands.ts'
import { parseList } from '../../core/parse.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printList, printOne } from '../../output/print.ts'
import { ageOf } from '../../output/text.ts'
import { webhooks } from './resource.ts'

const events = {
  flags: '--events <types>',
  description: 'only these: vm.*,operation.failed',
  parse: parseList,
}

function pauseCommand(name: 'pause' | 'resume', summary: string): AnyCommand {
  return command<{ ref: string }>({
    name,
    summary,
    arguments: [refArgument(webhooks)],
    examples: [`slipway webhook ${name} https://hooks.example.com/slipway`],
    async run(cli, { ref }) {
      const target = { project_id: await cli.project(), webhook_id: await idOf(cli, webhooks, ref) }
      await printOne(
        cli,
        await cli.client.webhookUpdate(target, { state: name === 'pause' ? 'paused' : 'active' }),
      )
    },
  })
}

export const webhook: GroupSpec = {
  name: 'webhook',
  summary: 'webhooks and their deliveries',
  commands: [
    listCommand(webhooks),
    command<{ url: string; events?: string[] }>({
      name: 'create',
      summary: 'create a webhook',
      arguments: [{ syntax: '<url>', description: 'where events are sent' }],
      options: [events],
      examples: [
        'slipway webhook create https://hooks.example.com/slipway --events vm.running,operation.failed',
      ],
      async run(cli, { url, events }) {
        const body = { url, event_types: events }
        await printOne(cli, await cli.client.webhookCreate({ project_id: await cli.project() }, body))
        cli.note('Keep the secret: it is shown this once.')
      },
    }),
    command<{ ref: string; url?: string; events?: string[] }>({
      name: 'change',
      summary: 'change the address or the events of a webhook',
      arguments: [refArgument(webhooks)],
      options: [{ flags: '--url <url>', description: 'another address' }, events],
      examples: ['slipway webhook change https://hooks.example.com/slipway --events vm.running'],
      async run(cli, { ref, url, events }) {
        const target = { project_id: await cli.project(), webhook_id: await idOf(cli, webhooks, ref) }
        await printOne(cli, await cli.client.webhookUpdate(target, { url, event_types: events }))
      },
    }),
    pauseCommand('pause', 'send nothing until it is resumed'),
    pauseCommand('resume', 'send again'),
    deleteCommand(webhooks, async (cli, webhook_id) => {
      await cli.client.webhookDelete({ project_id: await cli.project(), webhook_id })
      return {}
    }),
    command<{ ref: string }>({
      name: 'deliveries',
      summary: 'list deliveries of a webhook',
      arguments: [refArgument(webhooks)],
      examples: ['slipway webhook deliveries https://hooks.example.com/slipway'],
      async run(cli, { ref }) {
        const target = { project_id: await cli.project(), webhook_id: await idOf(cli, webhooks, ref) }
        await printList(cli, await cli.client.collect('webhookDeliveryList', target), [
          { name: 'id', value: (delivery) => delivery.id },
          { name: 'event', value: (delivery) => delivery.event_type },
          { name: 'state', value: (delivery) => delivery.state, isState: true },
          { name: 'attempts', value: (delivery) => delivery.attempts, align: 'right' },
          { name: 'status', value: (delivery) => delivery.response_status || delivery.error },
          { name: 'age', value: (delivery) => ageOf(delivery.created_at), align: 'right', spare: 1 },
        ])
      },
    }),
    command<{ ref: string; delivery: string }>({
      name: 'replay',
      summary: 'deliver once more',
      arguments: [refArgument(webhooks), { syntax: '<delivery>', description: 'id of the delivery' }],
      examples: [
        'slipway webhook replay https://hooks.example.com/slipway 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10',
      ],
      async run(cli, { ref, delivery }) {
        const webhook_id = await idOf(cli, webhooks, ref)
        const target = { project_id: await cli.project(), webhook_id, delivery_id: delivery }
        await printOne(cli, await cli.client.webhookDeliveryReplay(target))
      },
    }),
    command<{ ref: string }>({
      name: 'test',
      summary: 'send a test event',
      arguments: [refArgument(webhooks)],
      examples: ['slipway webhook test https://hooks.example.com/slipway'],
      async run(cli, { ref }) {
        const target = { project_id: await cli.project(), webhook_id: await idOf(cli, webhooks, ref) }
        await printOne(cli, await cli.client.webhookTest(target))
      },
    }),
    command<{ ref: string }>({
      name: 'rotate-secret',
      summary: 'replace the secret; both sign for a day',
      arguments: [refArgument(webhooks)],
      examples: ['slipway webhook rotate-secret https://hooks.example.com/slipway'],
      async run(cli, { ref }) {
        const target = { project_id: await cli.project(), webhook_id: await idOf(cli, webhooks, ref) }
        await printOne(cli, await cli.client.webhookRotateSecret(target))
      },
    }),
  ],
}
