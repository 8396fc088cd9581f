import Type, { type Static, type TObject, type TSchema } from 'typebox'
import { errorCodes, operationErrorCodes } from '../errors.ts'
import { faultSources } from '../instances/health.ts'
import { Instant, Timestamp, Uuid } from '../schema.ts'
import { paymentStates } from '../states.ts'

/** A route of a service that was started with `--dev`. These routes are not in the OpenAPI document. */
interface DevRoute {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  query?: TObject
  body?: TSchema
  response: TSchema
}

const strict = { additionalProperties: false }
const Nothing = Type.Object({})

export const clockModes = ['real', 'frozen', 'scaled'] as const
export const DevClock = Type.Object({
  mode: Type.Enum([...clockModes]),
  now: Timestamp,
  rate: Type.Number({
    description:
      'How many seconds the service clock advances per real second: 0 while frozen, 1 in real mode.',
  }),
})
export type DevClock = Static<typeof DevClock>

const DevClockSet = Type.Object(
  {
    mode: Type.Enum([...clockModes]),
    now: Type.Optional(Instant),
    rate: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 100_000 })),
  },
  strict,
)
const DevClockAdvance = Type.Object(
  { seconds: Type.Optional(Type.Number({ minimum: 0, maximum: 400 * 86_400 })), to: Type.Optional(Instant) },
  strict,
)

export const faultEffects = ['fail', 'reject', 'lie', 'forget', 'delay', 'hang'] as const
export type FaultEffect = (typeof faultEffects)[number]
const faultFields = {
  on: Type.String({
    description: 'An `operationId` of openapi.json, or a kind of operation such as `vm-create`.',
  }),
  step: Type.Optional(
    Type.String({ description: 'One step of the operation, such as `boot`. Default: every step.' }),
  ),
  name_pattern: Type.Optional(
    Type.String({
      maxLength: 100,
      description: 'The name of the resource; `*` and `?` are wildcards. Default: every name.',
    }),
  ),
  effect: Type.Enum([...faultEffects]),
  code: Type.Optional(Type.Enum([...errorCodes, ...operationErrorCodes])),
  delay_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 600_000 })),
  after: Type.Optional(Type.Integer({ minimum: 0, description: 'How many matches to skip. Default: 0.' })),
  times: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'The fault ends after it has taken effect this many times. Default: no limit.',
    }),
  ),
  probability: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 1 })),
  seed: Type.Optional(Type.Integer({ minimum: 0, maximum: 4_294_967_295 })),
}
export const DevFaultCreate = Type.Object(faultFields, strict)
export type DevFaultCreate = Static<typeof DevFaultCreate>
export const DevFault = Type.Object({
  ...faultFields,
  id: Uuid,
  matched: Type.Integer({ description: 'How many calls matched so far.' }),
  applied: Type.Integer({ description: 'How many of these calls were affected.' }),
})
export type DevFault = Static<typeof DevFault>

const DevTransitions = Type.Object(
  {
    mode: Type.Enum(['immediate', 'seconds']),
    n: Type.Optional(
      Type.Number({ minimum: 0, maximum: 3_600, description: 'How long a boot takes, in seconds.' }),
    ),
  },
  strict,
)
const DevCapacity = Type.Object(
  {
    type: Type.String(),
    location: Type.String(),
    free: Type.Integer({ minimum: 0, description: 'How many VMs of this type can be created.' }),
  },
  strict,
)
const DevGuestAgent = Type.Object(
  {
    present: Type.Boolean({
      description: 'Whether simulated guests have a guest agent. Initially, they have none.',
    }),
  },
  strict,
)
const DevMetrics = Type.Union([
  Type.Object(
    {
      gpu_utilization: Type.Number({ minimum: 0, maximum: 100, description: 'In percent, for every GPU.' }),
      ssh_sessions: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000, description: 'Default: 0.' })),
    },
    strict,
  ),
  Type.Object({ silent: Type.Literal(true) }, strict),
])
const DevXid = Type.Object(
  {
    xid: Type.Integer({
      minimum: 0,
      maximum: 999,
      description: 'The number of the XID error; 0 for a GPU that is lost without one.',
    }),
    gpu_index: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 15,
        description: 'The position of the GPU in the VM. Default: 0.',
      }),
    ),
    source: Type.Optional(
      Type.Enum([...faultSources], { description: 'What reports the error. Default: `guest`.' }),
    ),
    at: Type.Optional(Instant),
  },
  strict,
)
const DevConsole = Type.Object(
  {
    input: Type.String({
      minLength: 1,
      maxLength: 4_096,
      description: 'The text to type at the serial console. A line ends with `\\r`.',
    }),
  },
  strict,
)
const DevPayments = Type.Object({ organization_id: Uuid, state: Type.Enum([...paymentStates]) }, strict)

export const DevRequest = Type.Object({
  position: Type.Integer(),
  at: Timestamp,
  method: Type.String(),
  path: Type.String(),
  route: Type.String({ description: 'The `operationId` of the route. Empty for a path outside the API.' }),
  headers: Type.Record(Type.String(), Type.String()),
  body: Type.Unknown(),
  status: Type.Integer(),
})
export type DevRequest = Static<typeof DevRequest>
const itemsOf = <S extends TSchema>(item: S) => Type.Object({ items: Type.Array(item) })

/** Controls of a local service: clock, faults, capacity and failures. */
export const devRoutes = {
  clockGet: { method: 'GET', path: '/_dev/clock', response: DevClock },
  clockSet: { method: 'PUT', path: '/_dev/clock', body: DevClockSet, response: DevClock },
  clockAdvance: { method: 'POST', path: '/_dev/clock/advance', body: DevClockAdvance, response: DevClock },
  faultList: { method: 'GET', path: '/_dev/faults', response: itemsOf(DevFault) },
  faultCreate: { method: 'POST', path: '/_dev/faults', body: DevFaultCreate, response: DevFault },
  faultDelete: { method: 'DELETE', path: '/_dev/faults/{fault_id}', response: Nothing },
  faultDeleteAll: { method: 'DELETE', path: '/_dev/faults', response: Nothing },
  transitionsSet: {
    method: 'PUT',
    path: '/_dev/transitions',
    body: DevTransitions,
    response: DevTransitions,
  },
  capacitySet: { method: 'PUT', path: '/_dev/capacity', body: DevCapacity, response: DevCapacity },
  hostFail: { method: 'POST', path: '/_dev/hosts/{host_id}/fail', response: Nothing },
  hostRecover: { method: 'POST', path: '/_dev/hosts/{host_id}/recover', response: Nothing },
  vmCrash: { method: 'POST', path: '/_dev/vms/{vm_id}/crash', response: Nothing },
  guestAgentSet: { method: 'PUT', path: '/_dev/guest-agent', body: DevGuestAgent, response: DevGuestAgent },
  vmMetricsSet: {
    method: 'POST',
    path: '/_dev/vms/{vm_id}/metrics',
    body: DevMetrics,
    response: Nothing,
  },
  vmXid: { method: 'POST', path: '/_dev/vms/{vm_id}/xid', body: DevXid, response: Nothing },
  vmConsole: { method: 'POST', path: '/_dev/vms/{vm_id}/console', body: DevConsole, response: Nothing },
  paymentsSet: { method: 'PUT', path: '/_dev/payments', body: DevPayments, response: DevPayments },
  reset: { method: 'POST', path: '/_dev/reset', response: DevClock },
  requestList: {
    method: 'GET',
    path: '/_dev/requests',
    query: Type.Object({ after: Type.Optional(Type.Integer({ minimum: 0 })) }),
    response: itemsOf(DevRequest),
  },
} as const satisfies Record<string, DevRoute>

export type DevRoutes = typeof devRoutes
export type DevRouteId = keyof DevRoutes
type Part<R, K extends string> = R extends { [P in K]: infer S extends TSchema } ? Static<S> : undefined
export type DevBody<Id extends DevRouteId> = Part<DevRoutes[Id], 'body'>
export type DevQuery<Id extends DevRouteId> = Part<DevRoutes[Id], 'query'>
export type DevResponse<Id extends DevRouteId> = Static<DevRoutes[Id]['response']>
