import type { AdminEvent, Event, Webhook, WebhookDelivery, WebhookDeliveryDetail } from '@slipway/contract'
import { time } from '../postgres/time.ts'
import type { EventRow } from '../store/events/events.ts'
import type { DeliveryWithResource } from '../store/events/webhook-deliveries.ts'
import type { WebhookRow } from '../store/events/webhooks.ts'

/** Only admins, owners and operators see the addresses of callers. */
export const eventView = (row: EventRow, showsClient: boolean): Event => ({
  id: row.id,
  position: row.position,
  type: row.type,
  resource_type: row.resource_type,
  resource_id: row.resource_id,
  actor: row.actor,
  request_id: row.request_id,
  client_address: showsClient ? row.client_address : '',
  data: row.data,
  created_at: time(row.created_at),
})

export const adminEventView = (row: EventRow, showsClient: boolean): AdminEvent => ({
  ...eventView(row, showsClient),
  project_id: row.project_id ?? '',
  organization_id: row.organization_id ?? '',
})

/** Returns the request body with which the event is delivered. */
export function webhookPayload(row: EventRow): string {
  const event = eventView(row, false)
  return JSON.stringify({ type: event.type, timestamp: event.created_at, data: event })
}

export const webhookView = (row: WebhookRow): Webhook => ({
  id: row.id,
  url: row.url,
  event_types: row.event_types,
  state: row.state,
  failing_since: time(row.fails_since),
  next_attempt_at: time(row.fails_since && row.state === 'active' ? row.due_at : null),
  created_at: time(row.created_at),
})

export const deliveryView = (row: DeliveryWithResource): WebhookDelivery => ({
  id: row.id,
  event_id: row.event_id,
  event_type: row.event_type,
  resource_type: row.resource_type,
  resource_id: row.resource_id,
  resource_name: row.resource_name,
  state: row.state,
  attempts: row.attempts,
  response_status: row.response_status,
  error: row.error,
  next_attempt_at: time(row.next_attempt_at),
  created_at: time(row.created_at),
  completed_at: time(row.completed_at),
})

/** `event` is undefined until the event has a position. Nothing is delivered before that. */
export const deliveryDetailView = (
  row: DeliveryWithResource,
  event: EventRow | undefined,
): WebhookDeliveryDetail => ({
  ...deliveryView(row),
  payload: event ? webhookPayload(event) : '',
  response_body: row.response_body,
})
