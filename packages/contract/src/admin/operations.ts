import Type, { type Static } from 'typebox'
import { Event, EventListQuery } from '../events.ts'
import { Operation, OperationStep } from '../operations.ts'
import { defineRoutes } from '../route.ts'
import { pagedList, pageQuery, record, Timestamp, Uuid, UuidOrEmpty } from '../schema.ts'
import { operationStates } from '../states.ts'

/** Operator routes for operations and events of all tenants. */

export const AdminOperation = record('AdminOperation', {
  ...Operation.properties,
  project_id: Uuid,
  resource_name: Type.String({
    description: 'The name of the resource. Empty if the name is no longer known.',
  }),
  is_stuck: Type.Boolean(),
  step: Type.String({ description: 'The step that is in progress.' }),
  attempts: Type.Integer({
    description: 'How often the current step has failed. A retry by an operator starts again at 0.',
  }),
  error: Type.String({ description: 'The error of the last attempt.' }),
})

export const AdminOperationDetails = record('AdminOperationDetails', {
  ...AdminOperation.properties,
  next_attempt_at: Type.String({
    ...Timestamp,
    description:
      'When a worker continues the operation. Empty while a worker runs it, and after the operation has ended.',
  }),
  steps: Type.Array(OperationStep),
})

export const AdminEvent = record('AdminEvent', {
  ...Event.properties,
  project_id: UuidOrEmpty,
  organization_id: UuidOrEmpty,
})
export type AdminEvent = Static<typeof AdminEvent>

const AdminEventListQuery = Type.Object({
  ...EventListQuery.properties,
  project_id: Type.Optional(Type.String({ ...Uuid, description: 'Only events of this project.' })),
  organization_id: Type.Optional(
    Type.String({
      ...Uuid,
      description: 'Only events of this organization that do not belong to a project.',
    }),
  ),
})

export const adminOperationRoutes = defineRoutes({
  adminOperationList: {
    method: 'GET',
    path: '/v0.1/admin/operations',
    tag: 'Operators',
    summary: 'List operations of all tenants',
    description: 'In `metadata.request`, each script is shown as `sha256:` and its digest.',
    access: 'operator',
    query: Type.Object({
      ...pageQuery,
      stuck: Type.Optional(
        Type.Boolean({ description: 'If `true`, only operations that need an operator.' }),
      ),
      state: Type.Optional(Type.Enum([...operationStates])),
      resource_id: Type.Optional(Type.String({ ...Uuid, description: 'Only operations of this resource.' })),
    }),
    response: pagedList('AdminOperationList', AdminOperation),
  },
  adminOperationGet: {
    method: 'GET',
    path: '/v0.1/admin/operations/{operation_id}',
    tag: 'Operators',
    summary: 'Read an operation of a tenant and its steps',
    description: '`metadata.request` is shown without `startup_script` and `shutdown_script`.',
    access: 'operator',
    response: AdminOperationDetails,
  },
  adminOperationRetry: {
    method: 'POST',
    path: '/v0.1/admin/operations/{operation_id}/retry',
    tag: 'Operators',
    summary: 'Retry a stuck operation',
    access: 'operator',
    response: AdminOperation,
    errors: ['conflict'],
  },
  adminOperationAbandon: {
    method: 'POST',
    path: '/v0.1/admin/operations/{operation_id}/abandon',
    tag: 'Operators',
    summary: 'Abandon a stuck operation',
    isDestructive: true,
    description:
      'The operation is marked as failed. The service continues to remove resources that the operation left behind. You must remove resources that the service cannot remove.',
    access: 'operator',
    response: AdminOperation,
    errors: ['conflict'],
  },
  adminEventList: {
    method: 'GET',
    path: '/v0.1/admin/events',
    tag: 'Operators',
    summary: 'List the audit log of all tenants and operators',
    description: 'Supports `Accept: text/event-stream` like the events of a project.',
    access: 'operator',
    query: AdminEventListQuery,
    response: pagedList('AdminEventList', AdminEvent),
    alsoReturns: 'text/event-stream',
  },
})
