import { readCapacity } from '../../fleet/capacity.ts'
import { forgetHost } from '../../fleet/forget-host.ts'
import {
  changeGpuHold,
  changeHost,
  deleteHost,
  drainHost,
  readHost,
  registerHost,
} from '../../fleet/hosts.ts'
import { cancelMaintenance, scheduleMaintenance } from '../../fleet/maintenance.ts'
import { listHosts } from '../../store/fleet/fleet.ts'
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

  adminGpuUpdate: ({ tx, by, params, body }) => changeGpuHold(tx, by, params.gpu_id, body.state),

  adminCapacityList: async ({ tx }) => ({ items: await readCapacity(tx) }),
} satisfies Partial<Handlers>
