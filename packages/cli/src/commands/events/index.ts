import { eventTypes } from '@slipway/contract/event-types'
import { command } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { print, printLine, printList } from '../../output/print.ts'
import { idOfAny, namesById } from '../resource-names.ts'
import {
  eventColumns,
  type Limit,
  learnName,
  limitOption,
  namedColumns,
  nameOf,
  newestEvents,
} from './resource.ts'

interface EventsInput {
  follow?: boolean
  limit: Limit
  type?: string
  resource?: string
  actor?: string
  after?: number
}

export const events = command<EventsInput>({
  name: 'events',
  summary: 'show past events, or follow new ones',
  details:
    'With -f, the command prints each event as it happens, and continues without a gap if the connection was lost. With -o json, it prints one object per line.',
  options: [
    { flags: '-f, --follow', description: 'continue until interrupted' },
    limitOption,
    {
      flags: '--type <type>',
      description: 'only events of this type, for example vm.running',
      values: eventTypes,
    },
    {
      flags: '--resource <resource>',
      description: 'only events of this resource (name or id)',
      complete: 'vm',
    },
    {
      flags: '--actor <actor>',
      description: 'only events caused by this actor: user:…, access_key:… or system',
    },
    { flags: '--after <position>', description: 'with -f: continue after this position', parse: parseNumber },
  ],
  columns: eventColumns,
  examples: ['slipway events', 'slipway events -f', 'slipway events --type vm.running --limit 100 -o json'],
  async run(cli, { follow, limit, type, resource, actor, after }) {
    const project_id = await cli.project()
    const filter = { type, resource_id: resource && (await idOfAny(cli, resource)), actor }
    const names = await namesById(cli)
    if (follow) {
      for await (const event of cli.client.events({ project_id }, { ...filter, after })) {
        learnName(names, event)
        if (cli.format.kind !== 'table') printLine(cli, event)
        else print(cli, `${event.created_at}  ${event.type.padEnd(22)}  ${nameOf(names, event)}`)
      }
      return
    }
    const rows = await newestEvents(limit, (pageSize) =>
      cli.client.each('eventList', { project_id, ...filter, limit: pageSize }),
    )
    for (const event of rows) learnName(names, event)
    await printList(cli, rows, namedColumns(names), 'eventList')
  },
})
