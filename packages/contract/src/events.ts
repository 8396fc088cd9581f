import Type, { type Static } from 'typebox'
import { eventTypes, eventTypesPattern } from './event-types.ts'
import { defineRoutes } from './route.ts'
import {
  body,
  Empty,
  Instant,
  NonEmptyTimestamp,
  PageQuery,
  pagedList,
  pageQuery,
  record,
  Timestamp,
  Uuid,
} from './schema.ts'
import { deliveryStates, operationStates } from './states.ts'

export const Event = record('Event', {
  id: Uuid,
  position: Type.Integer({
    description:
      'Events are ordered by position. A new event always gets a higher position than all events that are already visible. 0 until the position is assigned, shortly after the event is written.',
  }),
  type: Type.String({
    description: 'For all types, see the query parameter `type` of the event list.',
    examples: ['vm.running'],
  }),
  resource_type: Type.String({ examples: ['vm'] }),
  resource_id: Type.String(),
  actor: Type.String({
    description:
      'Who caused the event: `user:<id>`, `access_key:<id>`, `operator_key:<id>` or `system`. Empty if the caller was not signed in.',
  }),
  request_id: Type.String(),
  client_address: Type.String({
    description:
      'The network address of the caller. Shown to the roles `admin` and `owner`; empty for other callers.',
    examples: ['203.0.113.7'],
  }),
  data: Type.Record(Type.String(), Type.Unknown()),
  created_at: NonEmptyTimestamp,
})
export type Event = Static<typeof Event>

export const EventListQuery = Type.Object({
  ...pageQuery,
  resource_id: Type.Optional(Type.String({ ...Uuid, description: 'Only events of this resource.' })),
  resource_type: Type.Optional(
    Type.String({
      maxLength: 50,
      description:
        'Only events of resources of this type, for example `vm`. This includes the results of operations on these resources.',
      examples: ['vm'],
    }),
  ),
  type: Type.Optional(Type.Enum<string[]>([...eventTypes])),
  actor: Type.Optional(
    Type.String({
      maxLength: 100,
      description: 'Only events that this actor caused, for example `user:<id>`.',
    }),
  ),
  start: Type.Optional(
    Type.String({ ...Instant, description: 'Only events at or after this time. Not supported for streams.' }),
  ),
  end: Type.Optional(
    Type.String({ ...Instant, description: 'Only events before this time. Not supported for streams.' }),
  ),
  after: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 999_999_999_999_999,
      description:
        'Only events after this position, oldest first. To miss no events, pass the position of the last event that you have read.',
    }),
  ),
})
export const EventList = pagedList('EventList', Event)

const ProjectEventListQuery = Type.Object({
  ...EventListQuery.properties,
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description:
        'Only events of resources with this text in their name or id, including deleted resources. Letter case is ignored. Not supported for streams.',
      examples: ['train'],
    }),
  ),
  operation_state: Type.Optional(
    Type.Enum([...operationStates], {
      description: 'Only events of operations that are now in this state. Not supported for streams.',
    }),
  ),
})

const EventTypes = Type.Array(
  Type.String({
    maxLength: 100,
    format: 'event-types',
    pattern: eventTypesPattern,
    description:
      'An event type, a pattern such as `operation.*` for all types of a resource, or `*` for all events. For all types, see the query parameter `type` of the event list.',
    examples: ['vm.running', 'operation.*'],
  }),
  { maxItems: 100 },
)
const WebhookUrl = Type.String({
  minLength: 8,
  maxLength: 2000,
  examples: ['https://hooks.example.com/slipway'],
})

export const Webhook = record('Webhook', {
  id: Uuid,
  url: Type.String(),
  event_types: Type.Array(Type.String(), {
    description: 'If the list is empty, the webhook receives all events.',
  }),
  state: Type.Enum(['active', 'paused']),
  failing_since: Type.String({
    ...Timestamp,
    description: 'When deliveries began to fail. Empty while deliveries succeed.',
  }),
  next_attempt_at: Type.String({
    ...Timestamp,
    description:
      'The time of the next attempt while deliveries fail. Empty if no delivery is waiting or the webhook is paused.',
  }),
  created_at: NonEmptyTimestamp,
})
export type Webhook = Static<typeof Webhook>

export const WebhookWithSecret = record('WebhookWithSecret', {
  ...Webhook.properties,
  secret: Type.String({
    description: 'The secret for verifying signatures, `whsec_…`. Each secret is shown only once.',
  }),
})

export const WebhookDelivery = record('WebhookDelivery', {
  id: Uuid,
  event_id: Uuid,
  event_type: Type.String(),
  resource_type: Type.String({ examples: ['vm'] }),
  resource_id: Type.String(),
  resource_name: Type.String({ description: 'The name of the resource. Empty if the resource has no name.' }),
  state: Type.Enum([...deliveryStates]),
  attempts: Type.Integer(),
  response_status: Type.Integer({
    description: 'The HTTP status of the last attempt; 0 if there was no response.',
  }),
  error: Type.String(),
  next_attempt_at: Timestamp,
  created_at: NonEmptyTimestamp,
  completed_at: Timestamp,
})
export type WebhookDelivery = Static<typeof WebhookDelivery>

export const WebhookDeliveryDetail = record('WebhookDeliveryDetail', {
  ...WebhookDelivery.properties,
  payload: Type.String({
    description:
      'The body of the request, exactly as it is sent and signed. Empty for a moment until the event has its position.',
    examples: ['{"type":"webhook.test","timestamp":"2026-11-14T23:50:00.000Z","data":{…}}'],
  }),
  response_body: Type.String({
    description:
      'The first 2 KiB of the response to the last attempt. Empty if there was no response, or if it was not UTF-8 text.',
    examples: ['unknown event type'],
  }),
})
export type WebhookDeliveryDetail = Static<typeof WebhookDeliveryDetail>

export const eventRoutes = defineRoutes({
  eventList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/events',
    tag: 'Events',
    summary: 'List or stream events',
    description:
      'With `Accept: text/event-stream`, the response is a stream of new events, or of all events after `Last-Event-ID`. `id:` is the position and `data:` is the event.',
    access: 'viewer',
    query: ProjectEventListQuery,
    response: EventList,
    alsoReturns: 'text/event-stream',
  },
  organizationEventList: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/events',
    tag: 'Events',
    summary: 'List or stream events of an organization',
    description:
      'Contains the events that do not belong to a project: members, billing, organization keys, failed sign-ins of members and reused refresh tokens. Supports `Accept: text/event-stream` like the events of a project.',
    access: 'admin',
    query: EventListQuery,
    response: EventList,
    alsoReturns: 'text/event-stream',
  },
  webhookList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/webhooks',
    tag: 'Events',
    summary: 'List webhooks',
    access: 'viewer',
    query: PageQuery,
    response: pagedList('WebhookList', Webhook),
  },
  webhookCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/webhooks',
    tag: 'Events',
    summary: 'Create a webhook',
    access: 'admin',
    body: body('WebhookCreate', { url: WebhookUrl, event_types: Type.Optional(EventTypes) }),
    response: WebhookWithSecret,
    errors: ['quota_exceeded'],
    noStore: true,
  },
  webhookUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}/webhooks/{webhook_id}',
    tag: 'Events',
    summary: 'Change, pause or resume a webhook',
    access: 'admin',
    body: body('WebhookUpdate', {
      url: Type.Optional(WebhookUrl),
      event_types: Type.Optional(EventTypes),
      state: Type.Optional(Type.Enum(['active', 'paused'])),
    }),
    response: Webhook,
  },
  webhookDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/webhooks/{webhook_id}',
    tag: 'Events',
    summary: 'Delete a webhook',
    access: 'admin',
    response: Empty,
  },
  webhookDeliveryList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/webhooks/{webhook_id}/deliveries',
    tag: 'Events',
    summary: 'List deliveries',
    access: 'viewer',
    query: Type.Object({
      ...pageQuery,
      state: Type.Optional(Type.Enum([...deliveryStates], { description: 'Only deliveries in this state.' })),
    }),
    response: pagedList('WebhookDeliveryList', WebhookDelivery),
  },
  webhookDeliveryGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}',
    tag: 'Events',
    summary: 'Read a delivery with its payload and the response',
    access: 'viewer',
    response: WebhookDeliveryDetail,
  },
  webhookDeliveryReplay: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/replay',
    tag: 'Events',
    summary: 'Send a delivery again',
    access: 'admin',
    response: WebhookDelivery,
  },
  webhookTest: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/webhooks/{webhook_id}/test',
    tag: 'Events',
    summary: 'Send a test event',
    access: 'admin',
    response: WebhookDelivery,
  },
  webhookRotateSecret: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/webhooks/{webhook_id}/rotate-secret',
    tag: 'Events',
    summary: 'Rotate the secret; deliveries are also signed with the old secret for one more day',
    isDestructive: true,
    access: 'admin',
    response: WebhookWithSecret,
    noStore: true,
  },
})
