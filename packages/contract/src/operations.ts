import Type, { type Static } from 'typebox'
import { CustomImage, Snapshot } from './captures/records.ts'
import { errorCodes, operationErrorCodes } from './errors.ts'
import { Disk, FirewallRule, InstanceGroup, Vm } from './resources.ts'
import { defineRoutes } from './route.ts'
import { pagedList, pageQuery, record, Timestamp, Uuid, wholeList } from './schema.ts'
import { operationNames, operationResourceTypes, operationStates, stepStates } from './states.ts'

export const OperationError = record('OperationError', {
  code: Type.Enum([...errorCodes, ...operationErrorCodes]),
  message: Type.String({ description: 'What went wrong.' }),
})
export type OperationError = Static<typeof OperationError>

const OperationResult = Type.Unsafe<
  Vm | Disk | FirewallRule | InstanceGroup | CustomImage | Snapshot | OperationError | null
>({
  oneOf: [{ type: 'null' }, Vm, Disk, FirewallRule, InstanceGroup, CustomImage, Snapshot, OperationError],
  description:
    'Null while the operation is in progress and after a deletion; the resource after success; an error after a failure.',
})

export const Operation = record(
  'Operation',
  {
    operation_id: Uuid,
    state: Type.Enum([...operationStates]),
    metadata: Type.Object({
      operation_name: Type.Enum([...operationNames]),
      id: Type.String({ format: 'uuid', description: 'The id of the resource.' }),
      type: Type.Enum([...operationResourceTypes]),
      request: Type.Record(Type.String(), Type.Unknown(), {
        description:
          'The body of the request. In lists, and for viewers and read keys, a `startup_script` or `shutdown_script` is shown as `sha256:` and its digest.',
      }),
    }),
    result: OperationResult,
    started_at: Timestamp,
    completed_at: Timestamp,
  },
  {
    examples: [
      {
        operation_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10',
        state: 'IN_PROGRESS',
        metadata: {
          operation_name: 'CREATE',
          id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e11',
          type: 'vm',
          request: { name: 'train-7', type: 'a100.1x', location: 'us-east1-a' },
        },
        result: null,
        started_at: '2026-11-14T23:50:00.000Z',
        completed_at: '',
      },
    ],
  },
)
export type Operation = Static<typeof Operation>

export const OperationStarted = record('OperationStarted', { operation: Operation })

export const OperationStep = record('OperationStep', {
  name: Type.String({ examples: ['boot'] }),
  state: Type.Enum([...stepStates]),
  started_at: Timestamp,
  completed_at: Timestamp,
})
export type OperationStep = Static<typeof OperationStep>

export const OperationListQuery = Type.Object({
  ...pageQuery,
  state: Type.Optional(Type.Enum([...operationStates])),
  resource_id: Type.Optional(
    Type.String({
      ...Uuid,
      description:
        'Only operations on this VM, disk, firewall rule, instance group, custom image or snapshot.',
    }),
  ),
})
export const OperationWaitQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 60,
      description: 'Wait for up to this many seconds until the operation ends.',
    }),
  ),
})
export const OperationList = pagedList('OperationList', Operation)

export const operationRoutes = defineRoutes({
  operationList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/operations',
    tag: 'Operations',
    summary: 'List operations on all resources of the project',
    access: 'viewer',
    query: OperationListQuery,
    response: OperationList,
  },
  operationGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/operations/{operation_id}',
    tag: 'Operations',
    summary: 'Read an operation, or wait until it ends',
    access: 'viewer',
    query: OperationWaitQuery,
    response: Operation,
  },
  operationSteps: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/operations/{operation_id}/steps',
    tag: 'Operations',
    summary: 'List the steps of an operation',
    access: 'viewer',
    response: wholeList('OperationStepList', OperationStep),
  },
})
