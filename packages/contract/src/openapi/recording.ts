import type { ErrorCode } from '../errors.ts'
import type { EventType } from '../event-types.ts'
import type { RouteId } from '../routes.ts'
import recorded from './recorded.json' with { type: 'json' }

/** Recorded requests and responses. packages/server/test/records/examples.test.ts writes recorded.json. */
export interface Recording {
  /** One value for each path parameter. */
  parameters: Record<string, string>
  routes: Partial<Record<RouteId, { request?: unknown; response: unknown }>>
  errors: Partial<Record<ErrorCode, unknown>>
  /** The first event of each type that occurred, as webhooks receive it. */
  events: Partial<Record<EventType, unknown>>
  /** Responses that are not JSON, by path or media type. */
  texts: Record<string, string>
}

/** A new route has no example until it is recorded; a test fails while an example is missing. */
export const recording = recorded as Recording
