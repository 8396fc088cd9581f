import type {
  DevBody,
  DevClock,
  DevFault,
  DevQuery,
  DevRequest,
  DevResponse,
  DevRouteId,
  DevRoutes,
} from '@slipway/contract'
import { type OrUndefined, pathSegment, readJson } from './call.ts'
import { ApiError, isApiError } from './errors.ts'
import { type ClientOptions, createTransport } from './transport.ts'

type Body<Id extends DevRouteId> = OrUndefined<DevBody<Id>>

/** Controls the clock, capacity and failures of a service that was started with `--dev`. */
export interface Levers {
  clock: {
    get(): Promise<DevClock>
    /** Freezes the clock, makes it run faster, or returns it to normal speed. It never moves backward. */
    set(clock: Body<'clockSet'>): Promise<DevClock>
    /** Moves the clock forward, and returns when everything that became due is done. */
    advance(distance: Body<'clockAdvance'>): Promise<DevClock>
  }
  faults: {
    list(): Promise<DevFault[]>
    create(fault: Body<'faultCreate'>): Promise<DevFault>
    delete(fault_id: string): Promise<void>
    deleteAll(): Promise<void>
  }
  /** Sets how long VMs take to boot. */
  transitions: { set(duration: Body<'transitionsSet'>): Promise<DevResponse<'transitionsSet'>> }
  /** Sets how many VMs of a type can still be created in a location. */
  capacity: { set(capacity: Body<'capacitySet'>): Promise<DevResponse<'capacitySet'>> }
  hosts: { fail(host_id: string): Promise<void>; recover(host_id: string): Promise<void> }
  vms: {
    crash(vm_id: string): Promise<void>
    /** Sets the metrics that the guest reports from now on. */
    metrics(vm_id: string, metrics: Body<'vmMetricsSet'>): Promise<void>
    /** Makes the guest or the host report a GPU XID error. */
    xid(vm_id: string, error: Body<'vmXid'>): Promise<void>
    /** Types text at the serial console. The guest's reply appears in its serial log and in open sessions. */
    console(vm_id: string, typed: Body<'vmConsole'>): Promise<void>
  }
  /** Sets whether simulated guests have an agent that freezes their file systems for a copy. */
  guestAgent: { set(agent: Body<'guestAgentSet'>): Promise<DevResponse<'guestAgentSet'>> }
  /** Sets the state of an organization's payment method. */
  payments: { set(payments: Body<'paymentsSet'>): Promise<DevResponse<'paymentsSet'>> }
  /** Deletes everything except the demo data, deletes all faults, and resets the clock to real time. */
  reset(): Promise<DevClock>
  /**
   * Lists the last 1,000 requests to the service, or those after a position, without credentials and secrets.
   */
  requests(query?: OrUndefined<DevQuery<'requestList'>>): Promise<DevRequest[]>
}

/**
 * The contract's route table is not imported, because its schemas are large. The compiler checks each entry
 * against its types.
 */
const paths: { [Id in DevRouteId]: `${DevRoutes[Id]['method']} ${DevRoutes[Id]['path']}` } = {
  clockGet: 'GET /_dev/clock',
  clockSet: 'PUT /_dev/clock',
  clockAdvance: 'POST /_dev/clock/advance',
  faultList: 'GET /_dev/faults',
  faultCreate: 'POST /_dev/faults',
  faultDelete: 'DELETE /_dev/faults/{fault_id}',
  faultDeleteAll: 'DELETE /_dev/faults',
  transitionsSet: 'PUT /_dev/transitions',
  capacitySet: 'PUT /_dev/capacity',
  hostFail: 'POST /_dev/hosts/{host_id}/fail',
  hostRecover: 'POST /_dev/hosts/{host_id}/recover',
  vmCrash: 'POST /_dev/vms/{vm_id}/crash',
  guestAgentSet: 'PUT /_dev/guest-agent',
  vmMetricsSet: 'POST /_dev/vms/{vm_id}/metrics',
  vmXid: 'POST /_dev/vms/{vm_id}/xid',
  vmConsole: 'POST /_dev/vms/{vm_id}/console',
  paymentsSet: 'PUT /_dev/payments',
  reset: 'POST /_dev/reset',
  requestList: 'GET /_dev/requests',
}

/** Longer than 30 s, which is the longest time that the service waits until all work is done. */
const timeoutMs = 60_000

export function createLevers(options: ClientOptions): Levers {
  const transport = createTransport({ timeoutMs, ...options })

  function send<Id extends DevRouteId>(id: Id, path: string, body?: unknown): Promise<DevResponse<Id>> {
    const [method = ''] = paths[id].split(' ')
    // A retry after a broken connection could move the clock twice.
    const request = { method, path, hasNoIdempotencyKey: true, ...(body !== undefined && { body }) }
    return transport.send(request, readJson) as Promise<DevResponse<Id>>
  }

  const isInDevMode = () =>
    send('clockGet', '/_dev/clock').then(
      () => true,
      (error) => !(isApiError(error) && error.code === 'not_found'),
    )

  async function call<Id extends DevRouteId>(
    id: Id,
    { target = '', query = '', body }: { target?: string; query?: string; body?: Body<Id> } = {},
  ): Promise<DevResponse<Id>> {
    const [, path = ''] = paths[id].split(' ')
    const filled = path.replace(/\{(\w+)\}/, (_, name) => pathSegment(id, name, target))
    try {
      return await send(id, filled + query, body)
    } catch (error) {
      if (!isApiError(error) || error.code !== 'not_found' || (await isInDevMode())) throw error
      const { code, status, requestId } = error
      const message = 'This service was not started with --dev.'
      throw new ApiError({ code, status, requestId, message, cause: error })
    }
  }

  return {
    clock: {
      get: () => call('clockGet'),
      set: (body) => call('clockSet', { body }),
      advance: (body) => call('clockAdvance', { body }),
    },
    faults: {
      list: async () => (await call('faultList')).items,
      create: (body) => call('faultCreate', { body }),
      delete: async (target) => void (await call('faultDelete', { target })),
      deleteAll: async () => void (await call('faultDeleteAll')),
    },
    transitions: { set: (body) => call('transitionsSet', { body }) },
    capacity: { set: (body) => call('capacitySet', { body }) },
    hosts: {
      fail: async (target) => void (await call('hostFail', { target })),
      recover: async (target) => void (await call('hostRecover', { target })),
    },
    vms: {
      crash: async (target) => void (await call('vmCrash', { target })),
      metrics: async (target, body) => void (await call('vmMetricsSet', { target, body })),
      xid: async (target, body) => void (await call('vmXid', { target, body })),
      console: async (target, body) => void (await call('vmConsole', { target, body })),
    },
    guestAgent: { set: (body) => call('guestAgentSet', { body }) },
    payments: { set: (body) => call('paymentsSet', { body }) },
    reset: () => call('reset'),
    requests: async ({ after = 0 } = {}) => (await call('requestList', { query: `?after=${after}` })).items,
  }
}
