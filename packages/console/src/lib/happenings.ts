import type { Event } from '@slipway/sdk'
import type { Tone } from './state-words.ts'

/** One thing that happened: what an operation did may have been told by several events. */
export interface Happening<One extends Event = Event> {
  /** Says how it ended or, while it is under way, how far it is. */
  event: One
  /** The newest first. */
  events: One[]
}

/** Joins the events of one operation into one happening. Takes and returns the newest first. */
export function happeningsOf<One extends Event>(events: One[]): Happening<One>[] {
  const byOperation = new Map<string, One[]>()
  const groups: One[][] = []
  for (const event of events) {
    const operation = typeof event.data.operation_id === 'string' ? event.data.operation_id : ''
    const group = byOperation.get(operation)
    if (operation && group) group.push(event)
    else {
      const begun = [event]
      groups.push(begun)
      if (operation) byOperation.set(operation, begun)
    }
  }
  return groups.map((events) => ({
    event: events.find(({ type }) => type.startsWith('operation.')) ?? events[0]!,
    events,
  }))
}

/** Returns how long it took, from the first event to the last that are known; 0 for a single one. */
export const tookMs = ({ events }: Happening): number =>
  Date.parse(events[0]!.created_at) - Date.parse(events.at(-1)!.created_at)

const tones: [Tone, RegExp][] = [
  ['bad', /failed|stuck|crashed|lost|declined|missing|host\.down|reused|disputed|abandoned/],
  ['warn', /unreachable|expiring|threshold|repeated|drain|suspended|removed|paused|forgotten|expired/],
  ['good', /running|succeeded|active|available|found|paid|host\.up|restored/],
  ['busy', /(creat|start|stopp|resett|delet|updat|resiz|attach|detach)ing/],
]

/** Returns the colour of an event: trouble is seen before it is read. */
export const eventTone = (type: string): Tone => tones.find(([, words]) => words.test(type))?.[0] ?? 'idle'
