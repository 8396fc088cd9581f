import { type AnyCommand, command } from '../../core/command.ts'
import { refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { webhooks, webhookTarget } from './resource.ts'

function stateCommand(name: string, state: 'paused' | 'active', summary: string): AnyCommand {
  return command<{ ref: string }>({
    name,
    summary,
    arguments: [refArgument(webhooks)],
    examples: [`slipway webhook ${name} https://hooks.example.com/slipway`],
    async run(cli, { ref }) {
      await printOne(cli, await cli.client.webhookUpdate(await webhookTarget(cli, ref), { state }))
    },
  })
}

export const webhookPause = stateCommand(
  'pause',
  'paused',
  'pause deliveries of a webhook until it is resumed',
)
export const webhookResume = stateCommand(
  'resume',
  'active',
  'resume a paused webhook and send the missed events',
)
