import { type adminRoutes, families, familyNames, familyOfModel, type Host, vmTypes } from '@slipway/contract'
import { Failure, invalidField, notFound } from '../../domain/failure.ts'
import { listAvailability } from '../../store/compute/placement.ts'
import type { Queryable } from '../../store/database.ts'
import {
  countGpus,
  findHost,
  insertHost,
  listHosts,
  listHostTenants,
  removeHost,
  setGpuHold,
  setHostSchedulable,
  settleDrainedHosts,
  startDraining,
} from '../../store/fleet/fleet.ts'
import { findLocation, listLocations } from '../../store/fleet/locations.ts'
import { putSimulatedHosts, removeSimulatedHost } from '../../store/simulated/hosts.ts'
import { hostView } from '../../views/catalogue.ts'
import type { Context, Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'
import { type AdminCatalogueRoutes, adminCatalogueHandlers } from './admin-catalogue.ts'

type FleetRoutes =
  | Extract<keyof typeof adminRoutes, `adminHost${string}`>
  | 'adminGpuUpdate'
  | 'adminCapacityList'

export const fleetHandlers: Handlers<FleetRoutes | AdminCatalogueRoutes> = {
  ...adminCatalogueHandlers,

  adminHostList: async ({ tx, query }) => {
    const limit = pageLimit(query)
    const rows = await listHosts(tx, {
      location: query.location ?? null,
      state: query.state ?? null,
      beforeId: readPageToken('adminHostList', query.page_token),
      limit: limit + 1,
    })
    return toPage('adminHostList', rows, limit, (row) => row.id, hostView)
  },

  adminHostCreate: async (context) => {
    const { tx, body } = context
    const location = await findLocation(tx, body.location)
    if (!location) throw invalidField('location', `there is no location ${body.location}`)
    const isSimulated = location.engine === 'simulated'
    if (isSimulated && !body.gpus) throw invalidField('gpus', 'is required in a simulated location')
    if (!isSimulated && body.gpus)
      throw invalidField('gpus', `a host of the ${location.engine} engine reports its GPUs itself`)
    if (body.gpus && !familyOfModel(body.gpus.model))
      throw invalidField('gpus/model', `must be one of ${models.join(', ')}`)
    const id = await insertHost(tx, location.name, body.name)
    if (!id) throw new Failure('already_exists', `There is a host ${body.name} in ${location.name} already.`)
    if (body.gpus) {
      const { model, count } = body.gpus
      await putSimulatedHosts(tx, location.name, [{ name: body.name, model, gpuCount: count }])
    }
    await audit(context, 'host.created', id, { name: body.name, location: location.name })
    return readHost(tx, id)
  },

  adminHostGet: ({ tx, params }) => readHost(tx, params.host_id),

  adminHostUpdate: async (context) => {
    const { tx, params, body } = context
    if (!(await setHostSchedulable(tx, params.host_id, body.schedulable))) throw notFound('host')
    await audit(context, 'host.updated', params.host_id, { schedulable: body.schedulable })
    return readHost(tx, params.host_id)
  },

  adminHostDrain: async (context) => {
    const { tx, params } = context
    if (!(await startDraining(tx, params.host_id))) throw notFound('host')
    const host = await readHost(tx, params.host_id)
    const { name, location } = host
    await audit(context, 'host.draining', host.id, { name, location })
    for (const tenant of await listHostTenants(tx, host.id))
      await context.audit({
        type: 'host.draining',
        resourceType: 'host',
        resourceId: host.id,
        projectId: tenant.project_id,
        organizationId: tenant.organization_id,
        data: { location, vm_ids: tenant.vm_ids },
      })
    await settleDrainedHosts(tx)
    return readHost(tx, host.id)
  },

  adminHostDelete: async (context) => {
    const { tx, params } = context
    const { name, location, engine } = await readHost(tx, params.host_id)
    if ((await removeHost(tx, params.host_id)) === 'in_use')
      throw new Failure(
        'conflict',
        `The host ${name} has VMs or disks on it: drain it, and remove it when it is empty.`,
      )
    if (engine === 'simulated') await removeSimulatedHost(tx, location, name)
    await audit(context, 'host.deleted', params.host_id, { name, location })
    return {}
  },

  adminGpuUpdate: async (context) => {
    const { tx, params, body } = context
    const gpu = await setGpuHold(tx, params.gpu_id, body.state === 'quarantined')
    if (!gpu) throw notFound('GPU')
    if (gpu.state !== body.state)
      throw new Failure(
        'conflict',
        gpu.state === 'claimed'
          ? `The GPU is claimed by the VM ${gpu.vm_id} and cannot become ${body.state}.`
          : `The GPU is ${gpu.state} and cannot become ${body.state}.`,
      )
    const data = { state: gpu.state, pci_address: gpu.pci_address }
    await context.audit({ type: 'gpu.updated', resourceType: 'gpu', resourceId: gpu.id, data })
    return gpu
  },

  adminCapacityList: async ({ tx }) => {
    const [locations, counts, fits] = await Promise.all([
      listLocations(tx),
      countGpus(tx),
      listAvailability(tx, vmTypes, null),
    ])
    return {
      items: locations.flatMap(({ name: location }) =>
        familyNames.map((family) => {
          const count = counts.find((row) => row.location === location && row.family === family)
          const fitting = vmTypes.filter(
            (type) =>
              type.family === family &&
              fits.some((item) => item.available && item.location === location && item.type === type.name),
          )
          const { total = 0, free = 0, claimed = 0, quarantined = 0 } = count ?? {}
          return {
            location,
            family,
            total,
            free,
            claimed,
            quarantined,
            largest_type: fitting.at(-1)?.name ?? '',
          }
        }),
      ),
    }
  },
}

const models = familyNames.map((family) => families[family].model)

async function readHost(db: Queryable, id: string): Promise<Host> {
  const row = await findHost(db, id)
  if (!row) throw notFound('host')
  return hostView(row)
}

const audit = (
  context: Pick<Context, 'audit'>,
  type: string,
  hostId: string,
  data: Record<string, unknown>,
): Promise<void> => context.audit({ type, resourceType: 'host', resourceId: hostId, data })
