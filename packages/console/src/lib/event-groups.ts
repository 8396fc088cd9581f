import type { Event } from '@slipway/sdk'
import type { Tone } from './states.ts'

/** The events of one operation, consecutive views by the same operator, or a single event. */
export interface EventGroup<One extends Event = Event> {
  /** The event that shows the result or, while the operation runs, its progress. */
  event: One
  /** Newest first. */
  events: One[]
}

/** Returns the id of the operation that the event belongs to; empty if there is none. */
export const operationOf = ({ data }: Event): string =>
  typeof data.operation_id === 'string' ? data.operation_id : ''

/** Operators' pages read a tenant's data several times, and each read is an event. */
const isSameView = (one: Event | undefined, other: Event): boolean =>
  other.type === 'operator.read' &&
  one?.type === other.type &&
  one.actor === other.actor &&
  one.resource_id === other.resource_id

/** Groups events by operation, and repeated views by operators. The given events and the groups are sorted, newest first. */
export function groupEvents<One extends Event>(events: One[]): EventGroup<One>[] {
  const byOperation = new Map<string, One[]>()
  const groups: One[][] = []
  for (const event of events) {
    const operation = operationOf(event)
    const last = groups.at(-1)
    const group = operation ? byOperation.get(operation) : isSameView(last?.[0], event) ? last : undefined
    if (group) group.push(event)
    else {
      const newGroup = [event]
      groups.push(newGroup)
      if (operation) byOperation.set(operation, newGroup)
    }
  }
  return groups.map((events) => ({
    event: events.find(({ type }) => type.startsWith('operation.')) ?? events[0]!,
    events,
  }))
}

/** The first event of an operation names it too, but does not have its result. */
const hasBeginning = ({ events }: EventGroup): boolean =>
  events.some(({ type, data }) => data.operation_name !== undefined && !type.startsWith('operation.'))

/**
 * Leaves out the last group if it is an operation whose first event is among the older ones that are not read yet:
 * its name and its duration would be missing.
 */
export function withoutCutGroup<Group extends EventGroup>(groups: Group[]): Group[] {
  const last = groups.at(-1)
  const isCut = last && operationOf(last.event) !== '' && !hasBeginning(last)
  return isCut && groups.length > 1 ? groups.slice(0, -1) : groups
}

/** Returns the time from the first to the last event; 0 for a single event. */
export const durationOfGroup = ({ events }: EventGroup): number =>
  Date.parse(events[0]!.created_at) - Date.parse(events.at(-1)!.created_at)

const tones: [Tone, RegExp][] = [
  ['bad', /failed|stuck|crashed|lost|declined|missing|host\.down|reused|disputed|abandoned/],
  [
    'warn',
    /unreachable|expiring|threshold|repeated|drain|maintenance_scheduled|suspended|removed|paused|forgotten|expired/,
  ],
  ['good', /running|active|available|found|paid|host\.up|restored/],
  ['idle', /shutoff/],
  ['busy', /(creat|start|stopp|resett|delet|updat|resiz|attach|detach)ing/],
]

/** Returns the tone of an event type. It selects the mark of the event; ordinary changes have none. */
export const eventTone = (type: string): Tone | undefined => tones.find(([, words]) => words.test(type))?.[0]
