import { requireFound } from '../../domain/failure.ts'
import { suspectXids } from '../../domain/health/xids.ts'
import { readCapacity } from '../../fleet/capacity.ts'
import { forgetHost } from '../../fleet/forget-host.ts'
import {
  changeGpuState,
  changeHost,
  checkGpu,
  deleteHost,
  drainHost,
  readHost,
  registerHost,
} from '../../fleet/hosts.ts'
import { cancelMaintenance, scheduleMaintenance } from '../../fleet/maintenance.ts'
import { findGpu, listHosts } from '../../store/fleet/fleet.ts'
import { countFaultsByDay } from '../../store/fleet/gpu-fault-days.ts'
import { listGpuFaults } from '../../store/fleet/gpu-health.ts'
import { hostView } from '../../views/catalogue.ts'
import { emptyResponse, type Handlers } from '../context.ts'
import { locationFilter } from '../filters.ts'
import { pageById } from '../pages.ts'

export const fleetHandlers = {
  async adminHostList(context) {
    const { tx, query } = context
    const filter = { location: await locationFilter(tx, query.location), state: query.state ?? null }
    return pageById(context, (beforeId, limit) => listHosts(tx, { ...filter, beforeId, limit }), hostView)
  },

  adminHostCreate: async ({ tx, by, body }) => hostView(await registerHost(tx, by, body)),

  adminHostGet: async ({ tx, params }) => hostView(await readHost(tx, params.host_id)),

  adminHostUpdate: async ({ tx, by, params, body }) =>
    hostView(await changeHost(tx, by, params.host_id, body)),

  adminHostDrain: async ({ tx, by, params }) => hostView(await drainHost(tx, by, params.host_id)),

  adminHostMaintenanceSet: async ({ tx, by, params, body }) =>
    hostView(await scheduleMaintenance(tx, by, params.host_id, body)),

  adminHostMaintenanceDelete: async ({ tx, by, params }) =>
    hostView(await cancelMaintenance(tx, by, params.host_id)),

  adminHostForget: async ({ tx, by, params }) => hostView(await forgetHost(tx, by, params.host_id)),

  adminHostDelete: ({ tx, by, params }) => emptyResponse(deleteHost(tx, by, params.host_id)),

  adminGpuUpdate: ({ tx, by, params, body }) => changeGpuState(tx, by, params.gpu_id, body.state),

  async adminGpuFaultList(context) {
    const { tx, params } = context
    requireFound('GPU', await findGpu(tx, params.gpu_id))
    return pageById(
      context,
      (before, limit) => listGpuFaults(tx, params.gpu_id, before, limit),
      ({ id, ...fault }) => fault,
    )
  },

  adminGpuFaultDayList: async ({ services, tx, query }) => ({
    items: await countFaultsByDay(tx, {
      location: await locationFilter(tx, query.location),
      days: query.days ?? 30,
      groupBy: query.group_by ?? 'model',
      suspectXids: suspectXids(services.config.health.meanings),
    }),
  }),

  adminGpuCheck: ({ tx, by, params }) => checkGpu(tx, by, params.gpu_id),

  adminCapacityList: async ({ tx }) => ({ items: await readCapacity(tx) }),
} satisfies Partial<Handlers>
