import type { Event } from '@slipway/sdk'
import type { OptionSpec } from '../../core/command.ts'
import { parseNumber, parseTime } from '../../core/parse.ts'
import type { Column } from '../../output/print.ts'

export const eventColumns: Column<Event>[] = [
  { name: 'time', value: (event) => event.created_at.slice(5, 19).replace('T', ' ') },
  { name: 'type', value: (event) => event.type },
  { name: 'resource', value: (event) => event.resource_id },
  { name: 'resource_id', value: (event) => event.resource_id, isExtra: true },
  { name: 'actor', value: (event) => event.actor, hideOrder: 1 },
  { name: 'position', value: (event) => event.position, isExtra: true },
]

/** Returns the columns, with resource names instead of ids. */
export const namedColumns = (names: Map<string, string>): Column<Event>[] =>
  eventColumns.map((column) =>
    column.name === 'resource' ? { ...column, value: (event) => nameOf(names, event) } : column,
  )

export const nameOf = (names: Map<string, string>, { resource_id }: Event): string =>
  names.get(resource_id) ?? resource_id

/** A deleted resource is not in any list, but its events contain its name. */
export function learnName(names: Map<string, string>, { resource_id, data }: Event): void {
  if (typeof data.name === 'string' && !names.has(resource_id)) names.set(resource_id, data.name)
}

/** The event columns and the caller's address, for users who may see it. */
export const auditColumns: Column<Event>[] = [
  ...eventColumns,
  { name: 'client', value: (event) => event.client_address, hideOrder: 2 },
]

export const limitOption: OptionSpec = {
  flags: '--limit <count>',
  description: 'number of newest entries to show',
  default: '20',
  parse: parseNumber,
}

/** The options of every command that lists events of a period. */
export const periodOptions: OptionSpec[] = [
  { flags: '--start <time>', description: 'only events at or after this time', parse: parseTime },
  { flags: '--end <time>', description: 'only events before this time', parse: parseTime },
]

/** A limit from the command line is parsed to a number; the default is a string. */
export type Limit = number | string

/** The largest page that the service returns. */
const maxPageSize = 500

/** Reads the newest events, a page at a time, up to the limit. */
export async function newestEvents(
  limit: Limit,
  read: (pageSize: number) => AsyncIterable<Event>,
): Promise<Event[]> {
  const count = Number(limit)
  const events: Event[] = []
  for await (const event of read(Math.min(maxPageSize, count))) {
    events.push(event)
    if (events.length >= count) break
  }
  return events
}
