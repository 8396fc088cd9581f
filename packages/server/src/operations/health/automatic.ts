import { type Family, vmType } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import type { Database, Tx } from '../../postgres/database.ts'
import { queueFirst } from '../../store/capacity/queue-entries.ts'
import { lockQueues, touchQueuesOfRequest } from '../../store/capacity/queues.ts'
import { hasReplacementRequest, insertRequest } from '../../store/capacity/requests.ts'
import { lockAnyVm, type VmRow } from '../../store/compute/vms.ts'
import { system } from '../../store/events/events.ts'
import type { ReplaceableVm } from '../../store/fleet/gpu-health.ts'
import { findLocation } from '../../store/fleet/locations.ts'
import { emitRequest } from '../capacity/events.ts'
import { mayReplaceByPolicy } from './guards.ts'
import { admitVmReplace } from './replace.ts'

const maxHoldSeconds = 900

/**
 * Replaces an unhealthy VM if its policy is `replace`. If no GPUs are in stock, the VM stays as it is, and a
 * capacity request for it is put first in its queue.
 */
export async function replaceByPolicy(
  database: Database,
  { id, organization_id }: ReplaceableVm,
): Promise<void> {
  try {
    await database.transaction(async (tx) => {
      const vm = await lockAnyVm(tx, id)
      if (vm && isReplacementDue(vm) && (await mayReplaceByPolicy(tx, id, vm.location)))
        await admitVmReplace(tx, { ...system, projectId: vm.project_id }, vm)
    })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    // The VM is busy. It is replaced later if it is still unhealthy.
    if (error.code !== 'out_of_stock') return
    await database.transaction((tx) => requestGpus(tx, id, organization_id))
  }
}

export const isReplacementDue = (vm: VmRow): boolean =>
  vm.on_gpu_fault === 'replace' &&
  vm.health?.status === 'unhealthy' &&
  (vm.state === 'STATE_RUNNING' || vm.state === 'STATE_CRASHED') &&
  !vm.deleted_at

/** Makes one request per fault. If the tenant cancels it, it is not made again. */
async function requestGpus(tx: Tx, vmId: string, organizationId: string): Promise<void> {
  const vm = await lockAnyVm(tx, vmId)
  if (!vm || !isReplacementDue(vm) || (await hasReplacementRequest(tx, vmId, vm.health!.since))) return
  const { gpuCount } = vmType(vm.type)!
  const family = vm.family as Family
  const isLocal = (await findLocation(tx, vm.location))?.storage === 'local'
  const request = await insertRequest(tx, {
    id: uuid(),
    organizationId,
    projectId: vm.project_id,
    onAvailable: 'create',
    holdSeconds: maxHoldSeconds,
    body: JSON.stringify({ replace_vm_id: vm.id }),
    startVmId: null,
    replaceVmId: vm.id,
    family,
    gpus: gpuCount,
    ttlSeconds: null,
    // The VM's quota is already taken.
    amounts: {},
    labels: {},
    until: null,
    actor: system.actor,
    requestId: system.requestId,
  })
  const queue = { location: vm.location, family }
  await lockQueues(tx, [queue])
  const hostId = isLocal ? vm.host_id : null
  await queueFirst(tx, queue, { id: request.id, gpus: gpuCount, vms: 1, isSpread: false, hostId })
  await touchQueuesOfRequest(tx, request.id)
  await emitRequest(tx, 'capacity_request.created', request)
  tx.signal('capacity')
}
