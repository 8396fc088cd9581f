import { type EventType, eventTypes } from '../event-types.ts'
import { Event } from '../events.ts'
import { eventFacts } from './event-examples.ts'
import { recording } from './recording.ts'
import type { Json } from './schemas.ts'

export { eventFacts }

/** The event types that webhooks can receive. */
export const deliveredTypes = eventTypes.filter((type) => eventFacts[type].scope === 'project')

/**
 * Returns an example of a webhook request: the event as the API shows it, in the Standard Webhooks format. If
 * the event type does not occur in the recorded run, the example comes from `eventFacts`.
 */
export function deliveryExample(type: EventType): Json {
  const { resource_type, resource_id, data } = eventFacts[type]
  const composed = { ...(recording.events['vm.running'] as Json), type, resource_type, resource_id, data }
  const event = (recording.events[type] ?? composed) as Json
  return { type, timestamp: event.created_at, data: event }
}

/** Returns the `webhooks` part of the document, with a description and an example for each event type. */
export function webhookEntries(print: (schema: unknown) => unknown): Json {
  const schemaOf = (type: EventType) => ({
    type: 'object',
    required: ['type', 'timestamp', 'data'],
    properties: {
      type: { type: 'string', const: type },
      timestamp: { type: 'string', format: 'date-time' },
      data: print(Event),
    },
  })
  const entry = (type: EventType) => ({
    post: {
      operationId: `on_${type.replace('.', '_')}`,
      tags: ['Events'],
      summary: type,
      description: eventFacts[type].when,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schemaOf(type), example: deliveryExample(type) } },
      },
      responses: {
        '2XX': {
          description:
            'Delivered. If there is another response, or no response within 10 seconds, the delivery is retried.',
        },
      },
    },
  })
  return Object.fromEntries(deliveredTypes.map((type) => [type, entry(type)]))
}
