import { randomBytes } from 'node:crypto'
import { type Event, signWebhook } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { command } from '../../core/command.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { print, printLine } from '../../output/print.ts'
import { eventsOption } from './resource.ts'

interface ListenInput {
  to: string
  events?: string[]
  secret?: string
}

const timeLimitMs = 15_000

export const webhookListen = command<ListenInput>({
  name: 'listen',
  summary: 'deliver events to a URL on this computer',
  details:
    'Use this to test a receiver that the service cannot reach. The command reads the event stream of the project and posts each event to the URL, signed like a webhook delivery. It does not create a webhook in the service. Each event is sent once; failed deliveries are not retried.',
  arguments: [
    { syntax: '<to>', description: 'URL of the receiver, for example http://localhost:3000/hooks' },
  ],
  options: [
    eventsOption,
    {
      flags: '--secret <secret>',
      description: 'signing secret, whsec_… (default: a new one, which is printed)',
    },
  ],
  examples: [
    'slipway webhook listen http://localhost:3000/hooks',
    "slipway webhook listen http://localhost:3000/hooks --events 'vm.*,operation.failed'",
  ],
  async run(cli, { to, events = [], secret = `whsec_${randomBytes(32).toString('base64')}` }) {
    if (!/^https?:$/.test(URL.canParse(to) ? new URL(to).protocol : ''))
      throw new UsageError(`${to} is not an HTTP URL. Expected http://… or https://…`)
    const project_id = await cli.project()
    const onConnect = () => cli.say(`Listening. Deliveries are signed with ${secret}`)
    for await (const event of cli.client.events({ project_id }, { onConnect })) {
      if (events.length === 0 || events.some((pattern) => matches(pattern, event.type)))
        report(cli, event, await deliver(to, secret, event))
    }
  },
})

/** `*` matches every type, `vm.*` all types of a kind. */
const matches = (pattern: string, type: string) =>
  pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : pattern === type

/** Returns the status of the response, or why there was none. */
async function deliver(to: string, secret: string, event: Event): Promise<number | string> {
  const body = JSON.stringify({ type: event.type, timestamp: event.created_at, data: event })
  const signed = await signWebhook(secret, { id: event.id, sentAt: new Date(), body })
  const signal = AbortSignal.timeout(timeLimitMs)
  const headers = { 'content-type': 'application/json', ...signed }
  try {
    const response = await fetch(to, { method: 'POST', headers, body, signal, redirect: 'manual' })
    await response.body?.cancel()
    return response.status
  } catch (error) {
    const cause = (error as Error).cause
    return cause instanceof Error ? cause.message : (error as Error).message
  }
}

function report(cli: Cli, { type, resource_id }: Event, outcome: number | string): void {
  if (cli.format.kind === 'table') print(cli, `${type.padEnd(22)}  ${resource_id}  ${outcome}`)
  else printLine(cli, { type, resource_id, outcome })
}
