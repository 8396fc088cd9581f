import { eventTypes } from '@slipway/contract/event-types'
import type { OperationState } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { print, printLine, printList } from '../../output/print.ts'
import { stateOption } from '../operation/resource.ts'
import { idOfAny, namesById } from '../resource-names.ts'
import {
  eventColumns,
  type Limit,
  learnName,
  limitOption,
  namedColumns,
  nameOf,
  newestEvents,
  periodOptions,
} from './resource.ts'

interface EventsInput {
  follow?: boolean
  limit: Limit
  type?: string
  resource?: string
  resourceType?: string
  search?: string
  state?: string
  actor?: string
  start?: string
  end?: string
  after?: number
}

export const events = command<EventsInput>({
  name: 'events',
  summary: 'show past events, or follow new ones',
  details:
    'With -f, the command prints each event as it happens, and continues without a gap if the connection is lost. With -o json, it prints one object per line.',
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
      flags: '--resource-type <type>',
      description: 'only events of resources of this type, for example vm',
    },
    {
      flags: '--search <text>',
      description: 'only events of resources with this text in their name or id',
    },
    { ...stateOption, description: `only events of operations in this state: ${stateOption.description}` },
    {
      flags: '--actor <actor>',
      description: 'only events caused by this actor: user:…, access_key:… or system',
    },
    ...periodOptions,
    { flags: '--after <position>', description: 'with -f: continue after this position', parse: parseNumber },
  ],
  columns: eventColumns,
  examples: [
    'slipway events',
    'slipway events -f',
    'slipway events --type vm.running --limit 100 -o json',
    'slipway events --search train-7 --state failed --start 2026-11-01',
  ],
  async run(cli, { follow, limit, type, resource, resourceType, search, state, actor, start, end, after }) {
    if (follow && (search ?? state ?? start ?? end) !== undefined)
      throw new UsageError('--search, --state, --start and --end cannot be used with --follow.')
    const project_id = await cli.project()
    const resource_id = resource && (await idOfAny(cli, resource))
    const filter = { type, resource_id, resource_type: resourceType, actor }
    const names = await namesById(cli)
    if (follow) {
      for await (const event of cli.client.events({ project_id }, { ...filter, after })) {
        learnName(names, event)
        if (cli.format.kind !== 'table') printLine(cli, event)
        else print(cli, `${event.created_at}  ${event.type.padEnd(22)}  ${nameOf(names, event)}`)
      }
      return
    }
    const operation_state = state?.toUpperCase() as OperationState | undefined
    const rows = await newestEvents(limit, (pageSize) =>
      cli.client.each('eventList', {
        ...{ project_id, ...filter, q: search, operation_state, start, end },
        limit: pageSize,
      }),
    )
    for (const event of rows) learnName(names, event)
    await printList(cli, rows, namedColumns(names), 'eventList')
  },
})
