import { type EventType, families, familyNames, familyOfModel } from '@slipway/contract'
import { Failure, invalidField, notFound } from '../domain/failure.ts'
import { dropHolds, offerGpus } from '../operations/capacity/offer.ts'
import type { Queryable, Tx } from '../postgres/database.ts'
import { emit, type Requester } from '../store/events/events.ts'
import {
  findHost,
  type HostRow,
  insertHost,
  listHostTenants,
  markDrainedHosts,
  removeHost,
  requestGpuCheck,
  setGpuHeldBack,
  setHostSchedulable,
  startDraining,
} from '../store/fleet/fleet.ts'
import { readmitHost } from '../store/fleet/forgotten-hosts.ts'
import { findLocation } from '../store/fleet/locations.ts'
import { emitForHostVms, setHostNote } from '../store/fleet/maintenance.ts'
import { putSimulatedHosts, removeSimulatedHost } from '../store/simulated/hosts.ts'

export interface NewHost {
  name: string
  location: string
  /** Only for the simulated engine: real hosts report their GPUs. */
  gpus?: { model: string; count: number }
}

/** Registers a host. A forgotten host can be registered again; its reports are then accepted. */
export async function registerHost(tx: Tx, by: Requester, host: NewHost): Promise<HostRow> {
  const location = await findLocation(tx, host.location)
  if (!location) throw invalidField('location', `there is no location ${host.location}`)
  const isSimulated = location.engine === 'simulated'
  if (isSimulated && !host.gpus) throw invalidField('gpus', 'is required in a simulated location')
  if (!isSimulated && host.gpus)
    throw invalidField(
      'gpus',
      `must be absent: a host of the ${location.engine} engine reports its GPUs itself`,
    )
  if (host.gpus && !familyOfModel(host.gpus.model))
    throw invalidField('gpus/model', `must be one of ${models.join(', ')}`)
  const id =
    (await insertHost(tx, location.name, host.name)) ?? (await readmitHost(tx, location.name, host.name))
  if (!id)
    throw new Failure('already_exists', `A host named ${host.name} already exists in ${location.name}.`)
  if (host.gpus) {
    const { model, count } = host.gpus
    await putSimulatedHosts(tx, location.name, [{ name: host.name, model, gpuCount: count }])
  }
  await emitHost(tx, by, 'host.created', id, { name: host.name, location: location.name })
  return readHost(tx, id)
}

export async function changeHost(
  tx: Tx,
  by: Requester,
  id: string,
  { schedulable, note }: { schedulable?: boolean; note?: string },
): Promise<HostRow> {
  await readHost(tx, id)
  if (schedulable !== undefined) {
    await setHostSchedulable(tx, id, schedulable)
    await (schedulable ? offerGpus : dropHolds)(tx, [id])
  }
  if (note !== undefined) await setHostNote(tx, { id, note, actor: by.actor })
  if (schedulable === undefined && note === undefined) return readHost(tx, id)
  const data = { ...(schedulable !== undefined && { schedulable }), ...(note !== undefined && { note }) }
  await emitHost(tx, by, 'host.updated', id, data)
  return readHost(tx, id)
}

/** Closes the host to new VMs, and emits an event for every tenant with VMs on it. */
export async function drainHost(tx: Tx, by: Requester, id: string): Promise<HostRow> {
  if (!(await startDraining(tx, id))) throw notFound('host')
  await dropHolds(tx, [id])
  const { name, location, vms } = await readHost(tx, id)
  await emitHost(tx, by, 'host.draining', id, { name, location, vms: vms.length })
  for (const tenant of await listHostTenants(tx, id))
    await emit(tx, {
      ...by,
      type: 'host.draining',
      resourceType: 'host',
      resourceId: id,
      projectId: tenant.project_id,
      organizationId: tenant.organization_id,
      data: { location, vm_ids: tenant.vm_ids },
    })
  await emitForHostVms(tx, id, 'vm.host_draining', { location })
  await markDrainedHosts(tx)
  return readHost(tx, id)
}

export async function deleteHost(tx: Tx, by: Requester, id: string): Promise<void> {
  const { name, location, engine } = await readHost(tx, id)
  if ((await removeHost(tx, id)) === 'in_use')
    throw new Failure(
      'conflict',
      `The host ${name} has VMs or disks. Drain it, and remove it when it is empty.`,
    )
  if (engine === 'simulated') await removeSimulatedHost(tx, location, name)
  await emitHost(tx, by, 'host.deleted', id, { name, location })
}

/** Withholds a GPU from VMs, or releases it. */
export async function changeGpuState(
  tx: Tx,
  by: Requester,
  id: string,
  state: 'free' | 'quarantined',
): Promise<HostRow['gpus'][number]> {
  const found = await setGpuHeldBack(tx, id, state === 'quarantined')
  if (!found) throw notFound('GPU')
  const { host_id, ...gpu } = found
  if (gpu.state !== state)
    throw new Failure(
      'conflict',
      gpu.state === 'claimed'
        ? `The GPU is claimed by the VM ${gpu.vm_id} and cannot become ${state}.`
        : `The GPU is ${gpu.state} and cannot become ${state}.`,
    )
  const data = { state: gpu.state, pci_address: gpu.pci_address }
  await emit(tx, { ...by, type: 'gpu.updated', resourceType: 'gpu', resourceId: gpu.id, data })
  if (state === 'free') await offerGpus(tx, [host_id])
  return gpu
}

/** Requests a check: the host's next report decides whether the GPU is healthy. */
export async function checkGpu(tx: Tx, by: Requester, id: string): Promise<HostRow['gpus'][number]> {
  const found = await requestGpuCheck(tx, id)
  if (!found) throw notFound('GPU')
  const { gpu, isMarked } = found
  if (!isMarked)
    throw new Failure(
      'conflict',
      gpu.state === 'claimed'
        ? `The GPU is claimed by the VM ${gpu.vm_id}. It is checked when the VM releases it.`
        : `The GPU is ${gpu.state} and cannot be checked now.`,
    )
  const data = { state: gpu.state, pci_address: gpu.pci_address }
  await emit(tx, { ...by, type: 'gpu.updated', resourceType: 'gpu', resourceId: gpu.id, data })
  return gpu
}

export async function readHost(db: Queryable, id: string): Promise<HostRow> {
  const row = await findHost(db, id)
  if (!row) throw notFound('host')
  return row
}

const models = familyNames.map((family) => families[family].model)

export const emitHost = (
  tx: Tx,
  by: Requester,
  type: EventType,
  hostId: string,
  data: Record<string, unknown>,
): Promise<void> => emit(tx, { ...by, type, resourceType: 'host', resourceId: hostId, data })
