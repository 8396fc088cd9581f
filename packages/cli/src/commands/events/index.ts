import type { Event } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { print, printList } from '../../output/print.ts'

interface EventsInput {
  follow?: boolean
  limit: number
  type?: string
  resource?: string
  actor?: string
  after?: number
}

export const eventColumns = [
  { name: 'time', value: (event: Event) => event.created_at.slice(5, 19).replace('T', ' ') },
  { name: 'type', value: (event: Event) => event.type },
  { name: 'resource', value: (event: Event) => event.resource_id },
  { name: 'actor', value: (event: Event) => event.actor, spare: 1 },
  { name: 'position', value: (event: Event) => event.position, isExtra: true },
]

export const events = command<EventsInput>({
  name: 'events',
  summary: 'show what happened, or follow what happens',
  details:
    'With -f a line per event as it happens, taken up again where it broke off; with -o json one object per line.',
  options: [
    { flags: '-f, --follow', description: 'go on until interrupted' },
    { flags: '--limit <count>', description: 'how many of the newest', default: '20', parse: parseNumber },
    { flags: '--type <type>', description: 'one type: vm.running' },
    { flags: '--resource <id>', description: 'of one resource' },
    { flags: '--actor <actor>', description: 'caused by one actor: user:…, access_key:…, system' },
    { flags: '--after <position>', description: 'with -f: continue after this position', parse: parseNumber },
  ],
  examples: ['slipway events', 'slipway events -f', 'slipway events --type vm.running --limit 100 -o json'],
  async run(cli, { follow, limit, type, resource, actor, after }) {
    const project_id = await cli.project()
    const filter = { type, resource_id: resource, actor }
    if (follow) {
      for await (const event of cli.client.events({ project_id }, { ...filter, after }))
        printEvent(cli.format.kind, event)
      return
    }
    const rows: Event[] = []
    for await (const event of cli.client.each('eventList', {
      project_id,
      ...filter,
      limit: Math.min(500, Number(limit)),
    })) {
      rows.push(event)
      if (rows.length >= Number(limit)) break
    }
    await printList(cli, rows, eventColumns)
  },
})

function printEvent(kind: string, event: Event): void {
  if (kind === 'table') print(`${event.created_at}  ${event.type.padEnd(22)}  ${event.resource_id}`)
  else print(JSON.stringify(event))
}
