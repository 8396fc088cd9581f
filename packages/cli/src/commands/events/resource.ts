import type { Event } from '@slipway/sdk'
import type { OptionSpec } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import type { Column } from '../../output/print.ts'

export const eventColumns: Column<Event>[] = [
  { name: 'time', value: (event) => event.created_at.slice(5, 19).replace('T', ' ') },
  { name: 'type', value: (event) => event.type },
  { name: 'resource', value: (event) => event.resource_id },
  { name: 'actor', value: (event) => event.actor, spare: 1 },
  { name: 'position', value: (event) => event.position, isExtra: true },
]

/** With where the caller was, for those who may see it. */
export const auditColumns: Column<Event>[] = [
  ...eventColumns,
  { name: 'client', value: (event) => event.client_address, spare: 2 },
]

export const limitOption: OptionSpec = {
  flags: '--limit <count>',
  description: 'how many of the newest',
  default: '20',
  parse: parseNumber,
}

/** A given limit is parsed; the default reaches the command as text. */
export type Limit = number | string

/** The service returns no more events than this on one page. */
const longestPage = 500

/** Reads the newest events, a page at a time, up to the limit. */
export async function newestEvents(
  limit: Limit,
  read: (pageSize: number) => AsyncIterable<Event>,
): Promise<Event[]> {
  const count = Number(limit)
  const events: Event[] = []
  for await (const event of read(Math.min(longestPage, count))) {
    events.push(event)
    if (events.length >= count) break
  }
  return events
}
