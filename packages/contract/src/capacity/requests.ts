import Type, { type Static } from 'typebox'
import { InstanceGroupCreate } from '../instances/groups.ts'
import { OperationError, OperationStarted } from '../operations.ts'
import { defineRoutes } from '../route.ts'
import {
  body,
  Instant,
  Labels,
  labelQuery,
  NonEmptyTimestamp,
  pagedList,
  pageQuery,
  record,
  Timestamp,
  Uuid,
  UuidOrEmpty,
} from '../schema.ts'
import { capacityRequestStates } from '../states.ts'
import { familyNames } from '../vm-types.ts'
import { VmCreate } from '../vms.ts'

export const minHoldSeconds = 300
export const maxHoldSeconds = 900
export const maxWaitDays = 30

export const CapacityRequestCreate = body(
  'CapacityRequestCreate',
  {
    vm: Type.Optional(VmCreate),
    instance_group: Type.Optional(InstanceGroupCreate),
    start_vm_id: Type.Optional(
      Type.String({ ...Uuid, description: 'A stopped VM to start when GPUs are free.' }),
    ),
    locations: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
        minItems: 1,
        maxItems: 20,
        uniqueItems: true,
        description:
          'Where the VM may run. The default is the location in `vm`; if that is `any`, every location that can run the VM. All members of a group run in one location.',
      }),
    ),
    until: Type.Optional(
      Type.String({
        ...Instant,
        description: `When the request stops waiting, at most ${maxWaitDays} days from now. The default is 7 days from now.`,
      }),
    ),
    on_available: Type.Optional(
      Type.Enum(['create', 'hold'], {
        default: 'create',
        description:
          '`create` creates or starts the VM, or creates the group, when GPUs are free. `hold` holds the GPUs for up to `hold_seconds`, until you claim them.',
      }),
    ),
    hold_seconds: Type.Optional(
      Type.Integer({ minimum: minHoldSeconds, maximum: maxHoldSeconds, default: maxHoldSeconds }),
    ),
    labels: Type.Optional(Labels),
  },
  { description: 'Exactly one of `vm`, `instance_group` and `start_vm_id` is required.' },
)
export type CapacityRequestCreate = Static<typeof CapacityRequestCreate>

export const CapacityEstimate = record('CapacityEstimate', {
  earliest_at: Type.String({
    ...Timestamp,
    description: 'About 10% of comparable requests are granted by this time. Empty if there is no estimate.',
  }),
  likely_at: Type.String({
    ...Timestamp,
    description: 'About 50% of comparable requests are granted by this time.',
  }),
  latest_at: Type.String({
    ...Timestamp,
    description: 'About 90% of comparable requests are granted by this time.',
  }),
  basis: Type.Enum(['expiries', 'history', 'none'], {
    description:
      '`expiries`: VMs with a time to live will release enough GPUs. `history`: estimated from how long VMs of the family ran in the last 30 days. `none`: there is no estimate.',
  }),
  hit_rate: Type.Union([Type.Number(), Type.Null()], {
    description:
      'How reliable the estimates are: among the 200 requests that ended last, the share that was granted by the `latest_at` of the first estimate. Null if no request with an estimate has ended yet.',
  }),
  computed_at: Timestamp,
})
export type CapacityEstimate = Static<typeof CapacityEstimate>

const requestFields = {
  id: Uuid,
  state: Type.Enum([...capacityRequestStates]),
  on_available: Type.Enum(['create', 'hold']),
  request: Type.Record(Type.String(), Type.Unknown(), {
    description:
      'The body of the request. A request that the service made to move an unhealthy VM to other GPUs has `replace_vm_id`, the id of that VM. Callers that may only read see `sha256:…` instead of `startup_script` and `shutdown_script`.',
  }),
  gpus_wanted: Type.Integer(),
  gpus_held: Type.Integer({ description: 'GPUs that are currently held for the request.' }),
  position: Type.Union([Type.Integer(), Type.Null()], {
    description: 'The position in the queue, from 1. Null if it is over 100 or the request is not waiting.',
  }),
  blocked_by: Type.Enum(['', 'quota', 'budget', 'payment', 'suspended'], {
    description:
      'Why the request is skipped. A skipped request keeps its position in the queue. Empty if the request is not skipped.',
  }),
  estimate: CapacityEstimate,
  location: Type.String({ description: 'Empty until GPUs are held for the request.' }),
  resource_id: Type.String({
    ...UuidOrEmpty,
    description: 'The VM or the group. Empty until the request is fulfilled.',
  }),
  operation_id: Type.String({
    ...UuidOrEmpty,
    description:
      'The operation that creates or starts the VM, or creates the group. Empty until the request is fulfilled.',
  }),
  error: Type.Union([OperationError, Type.Null()], {
    description: 'Why the request failed. Null unless its state is `failed`.',
  }),
  until: Timestamp,
  held_until: Type.String({ ...Timestamp, description: 'Empty unless GPUs are held for a claim.' }),
  created_at: NonEmptyTimestamp,
  updated_at: NonEmptyTimestamp,
  labels: Labels,
}
export const CapacityRequest = record('CapacityRequest', requestFields)
export type CapacityRequest = Static<typeof CapacityRequest>

export const AdminCapacityRequest = record('AdminCapacityRequest', {
  ...requestFields,
  organization_id: Uuid,
  project_id: Uuid,
  family: Type.String(),
})
export type AdminCapacityRequest = Static<typeof AdminCapacityRequest>

const path = '/v0.1/projects/{project_id}/capacity-requests'

export const capacityRequestRoutes = defineRoutes({
  capacityRequestCreate: {
    method: 'POST',
    path,
    tag: 'VMs',
    summary: 'Wait for GPUs',
    description:
      'Creates a capacity request. Use this when a creation or a start fails with `out_of_stock`. Organizations take turns, and requests of the same organization are granted in the order in which they arrived. Waiting costs nothing and uses no GPU quota. A request counts toward the organization’s quota `capacity_requests` until it ends. The name of the VM is not reserved: if another VM has the name when the request is granted, the request fails. A group gets the GPUs for all its members at the same time; until then, smaller requests can be granted first. A request fails if its template is deleted in the meantime.',
    access: 'member',
    costsMoney: true,
    body: CapacityRequestCreate,
    response: CapacityRequest,
    errors: ['already_exists', 'conflict', 'quota_exceeded'],
  },
  capacityRequestList: {
    method: 'GET',
    path,
    tag: 'VMs',
    summary: 'List capacity requests',
    access: 'viewer',
    query: Type.Object({
      ...pageQuery,
      state: Type.Optional(Type.Enum([...capacityRequestStates])),
      ...labelQuery,
    }),
    response: pagedList('CapacityRequestList', CapacityRequest),
  },
  capacityRequestGet: {
    method: 'GET',
    path: `${path}/{capacity_request_id}`,
    tag: 'VMs',
    summary: 'Read a capacity request, or wait until it ends or its GPUs are held',
    access: 'viewer',
    query: Type.Object({
      wait: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 60,
          description:
            'Waits for up to this many seconds until the request has ended, or GPUs are held for a claim.',
        }),
      ),
    }),
    response: CapacityRequest,
  },
  capacityRequestUpdate: {
    method: 'PATCH',
    path: `${path}/{capacity_request_id}`,
    tag: 'VMs',
    summary: 'Change how long a capacity request waits, or replace its labels',
    access: 'member',
    body: body('CapacityRequestUpdate', { until: Type.Optional(Instant), labels: Type.Optional(Labels) }),
    response: CapacityRequest,
    errors: ['conflict'],
  },
  capacityRequestDelete: {
    method: 'DELETE',
    path: `${path}/{capacity_request_id}`,
    tag: 'VMs',
    summary: 'Cancel a capacity request',
    description: 'Returns the cancelled request. A request that has ended cannot be cancelled.',
    access: 'member',
    response: CapacityRequest,
    errors: ['conflict'],
  },
  capacityRequestClaim: {
    method: 'POST',
    path: `${path}/{capacity_request_id}/claim`,
    tag: 'VMs',
    summary: 'Use the GPUs that are held for a capacity request',
    description:
      'Creates or starts the VM, or creates the group. After `held_until`, the GPUs are no longer held, and the request has expired.',
    access: 'member',
    costsMoney: true,
    response: OperationStarted,
    errors: ['already_exists', 'conflict', 'out_of_stock', 'quota_exceeded'],
  },
})

export const adminCapacityRequestRoutes = defineRoutes({
  adminCapacityRequestList: {
    method: 'GET',
    path: '/v0.1/admin/capacity-requests',
    tag: 'Operators',
    summary: 'List the unfinished capacity requests of all tenants',
    access: 'operator',
    query: Type.Object({
      ...pageQuery,
      location: Type.Optional(Type.String({ maxLength: 100 })),
      family: Type.Optional(Type.Enum([...familyNames])),
    }),
    response: pagedList('AdminCapacityRequestList', AdminCapacityRequest),
  },
})
