import {
  type DevBody,
  type DevQuery,
  type DevResponse,
  type DevRouteId,
  devRoutes,
  type Route,
  vmType,
} from '@slipway/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { setUpNetwork } from '../accounts/project-setup.ts'
import { Failure, invalidField, requireFound } from '../domain/failure.ts'
import { oneOf } from '../domain/nearest.ts'
import { EngineError } from '../engines/engine.ts'
import { SimulatedEngine } from '../engines/simulated/engine.ts'
import { type Access, bearerOf } from '../http/access.ts'
import { isOwnOrigin } from '../http/host-names.ts'
import type { EventStreams } from '../http/streams/streams.ts'
import { compileValidators } from '../http/validation.ts'
import { requireQuota } from '../operations/admission.ts'
import { offerGpus } from '../operations/capacity/offer.ts'
import { demoOf } from '../setup/demo.ts'
import { setPaymentState } from '../store/billing/payments.ts'
import { findAnyVm } from '../store/compute/vms.ts'
import { limitCapacity, listHostIds } from '../store/dev/capacity.ts'
import { deleteAllButDemo } from '../store/dev/reset.ts'
import { findHost } from '../store/fleet/fleet.ts'
import { advanceClock, changeClock, readClock, type Workers } from './clock.ts'
import type { Faults } from './faults.ts'
import type { RequestLog } from './request-log.ts'

interface DevContext<Id extends DevRouteId> {
  params: Record<string, string>
  query: DevQuery<Id>
  body: DevBody<Id>
}
type DevHandlers = { [Id in DevRouteId]: (context: DevContext<Id>) => Promise<DevResponse<Id>> }

/** The parts of the service that the levers control. */
export interface DevParts {
  workers: Workers
  faults: Faults
  access: Access
  streams: EventStreams
}

/** Applies faults to requests, and logs the requests. Must be called before the routes are mounted. */
export function watchRequests(app: FastifyInstance, faults: Faults, log: RequestLog): void {
  app.addHook('preHandler', (request) => faults.interceptRequest(request))
  app.addHook('onResponse', (request, reply, done) => {
    log.record(request, reply, new Date())
    done()
  })
}

/** Mounts the levers. They require an operator's credential, and can be used only from this machine. */
export function mountLevers(app: FastifyInstance, parts: DevParts, log: RequestLog): void {
  const handlers = leversOf(parts, log)
  const { access, workers } = parts
  for (const id of Object.keys(devRoutes) as DevRouteId[]) {
    const route = devRoutes[id]
    const validators = compileValidators(route as unknown as Route)
    app.route({
      method: route.method,
      url: route.path.replace(/\{(\w+)\}/g, ':$1'),
      onRequest: async (request) => {
        requireLocal(request, workers)
        const caller = await access.authenticate(bearerOf(request), request.ip)
        if (caller.kind !== 'operator_key' && !(caller.kind === 'user' && caller.isOperator))
          throw new Failure(
            'permission_denied',
            'Only operators may use /_dev: send the operator_key of credentials.json.',
          )
      },
      handler: async (request) => {
        const params = request.params as Record<string, string>
        validators.params(params)
        validators.query(request.query as Record<string, unknown>)
        const body = validators.body(request.body)
        return handlers[id]({ params, query: request.query, body } as never)
      },
    })
  }
}

/** Rejects requests from other sites, which could reach a local service through the browser of its user. */
function requireLocal(request: FastifyRequest, { services }: Workers): void {
  const isLoopback = /^(::1|(::ffff:)?127\..*)$/.test(request.raw.socket.remoteAddress ?? '')
  const isLocalName = /^(localhost|127\.[0-9.]+|\[::1\]|[a-z0-9-]+\.localhost)(:[0-9]+)?$/i.test(request.host)
  if (
    !isLoopback ||
    !isLocalName ||
    (request.headers.origin !== undefined && !isOwnOrigin(request, services))
  )
    throw new Failure('permission_denied', 'Only programs and pages on this machine may use /_dev.')
}

function leversOf({ workers, faults, streams }: DevParts, log: RequestLog): DevHandlers {
  const { database, engines } = workers.services
  const simulators = () => [...engines.values()].filter((engine) => engine instanceof SimulatedEngine)

  let lastMove: Promise<unknown> = Promise.resolve()
  /** Runs one move of the clock at a time, because the steps of concurrent moves would add up. */
  function inTurn<T>(move: () => Promise<T>): Promise<T> {
    const moved = lastMove.then(move)
    lastMove = moved.catch(() => {})
    return moved
  }

  function simulatorAt(location: string): SimulatedEngine {
    const engine = engines.get(location)
    if (engine instanceof SimulatedEngine) return engine
    throw new Failure('conflict', `${location} has no simulated engine, so this is not possible there.`)
  }

  async function setHostLost(hostId: string, isLost: boolean): Promise<Record<string, never>> {
    const host = requireFound('host', await findHost(database, hostId))
    const engine = simulatorAt(host.location)
    await engine.setHostLost(host.name, isLost)
    if (!isLost) await engine.repairGpus(host.name)
    await workers.reconciler.reports()
    return {}
  }

  return {
    clockGet: () => readClock(workers),
    clockSet: ({ body }) => inTurn(() => changeClock(workers, body)),
    clockAdvance: ({ body }) => inTurn(() => advanceClock(workers, body)),

    faultList: async () => ({ items: faults.items }),
    faultCreate: ({ body }) => faults.add(body),
    async faultDelete({ params }) {
      await faults.remove(params.fault_id!)
      return {}
    },
    async faultDeleteAll() {
      await faults.remove()
      return {}
    },

    async transitionsSet({ body: { mode, n = 0 } }) {
      const bootMs = mode === 'immediate' ? 0 : n * 1000
      for (const engine of simulators()) engine.setBootMs([bootMs, bootMs])
      return { mode, ...(mode === 'seconds' && { n }) }
    },

    async capacitySet({ body }) {
      const type = vmType(body.type)
      if (!type) throw invalidField('type', 'is not a VM type')
      if (!engines.has(body.location))
        throw invalidField('location', oneOf(body.location, [...engines.keys()]))
      await database.transaction(async (tx) => {
        const stock = { location: body.location, family: type.family }
        const fitting = await limitCapacity(tx, stock, type.gpuCount, body.free)
        if (fitting < body.free)
          throw invalidField('free', `must be at most ${fitting}, the number of such VMs that fit now`)
        await offerGpus(tx, await listHostIds(tx, stock))
      })
      return body
    },

    hostFail: ({ params }) => setHostLost(params.host_id!, true),
    hostRecover: ({ params }) => setHostLost(params.host_id!, false),
    async vmCrash({ params }) {
      const vm = requireFound('VM', await findAnyVm(database, params.vm_id!))
      await simulatorAt(vm.location).crashVm(vm.id)
      await workers.reconciler.reports()
      return {}
    },

    async guestAgentSet({ body }) {
      for (const engine of simulators()) await engine.setGuestAgent(body.present)
      return body
    },

    async vmMetricsSet({ params, body }) {
      const vm = requireFound('VM', await findAnyVm(database, params.vm_id!))
      await simulatorAt(vm.location).setMetrics(vm.id, body)
      await workers.reconciler.samples()
      return {}
    },

    async vmXid({ params, body: { xid, gpu_index: gpuIndex = 0, source = 'guest', at } }) {
      const vm = requireFound('VM', await findAnyVm(database, params.vm_id!))
      if (source === 'guest' && xid === 0)
        throw invalidField('xid', 'must be at least 1 if the guest reports it: a lost GPU reports nothing')
      const error = { xid, gpuIndex, source, at: at === undefined ? null : new Date(at) }
      if (!(await simulatorAt(vm.location).reportXid(vm.id, error)))
        throw invalidField('gpu_index', `must be less than ${vm.gpu_count}, the number of GPUs of ${vm.name}`)
      if (source === 'host') await workers.reconciler.reports()
      await workers.reconciler.samples()
      return {}
    },

    async vmConsole({ params, body }) {
      const vm = requireFound('VM', await findAnyVm(database, params.vm_id!))
      const simulator = simulatorAt(vm.location)
      const session = await simulator.openConsole({ id: vm.id, host: '' }).catch((error) => {
        throw error instanceof EngineError ? new Failure('conflict', `${vm.name} is not running.`) : error
      })
      await session.write(Buffer.from(body.input))
      session.close()
      return {}
    },

    async paymentsSet({ body }) {
      await database.transaction(async (tx) => {
        await setPaymentState(tx, body.organization_id, body.state)
        tx.signal('access')
      })
      return body
    },

    async reset() {
      await faults.remove()
      await database.transaction(async (tx) => {
        const demo = requireFound('demo', await demoOf(tx))
        await deleteAllButDemo(tx, demo)
        await requireQuota(tx, demo.project_id, { firewall_rules: await setUpNetwork(tx, demo.project_id) })
        tx.signal('access')
      })
      streams.endAll()
      log.clear()
      return readClock(workers)
    },

    requestList: async ({ query }) => ({ items: log.after(query?.after ?? 0) }),
  }
}
