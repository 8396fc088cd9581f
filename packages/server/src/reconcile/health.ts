import { vmType } from '@slipway/contract'
import type { GuestReport } from '../domain/guest/report.ts'
import { driverReasons, type Fault, hasReason, withoutRecovered } from '../domain/health/health.ts'
import type { VmSample } from '../engines/engine.ts'
import { replaceByPolicy } from '../operations/health/automatic.ts'
import { changeHealth, recordFaults, resumeBilling } from '../operations/health/faults.ts'
import type { Tx } from '../postgres/database.ts'
import { readServiceTime } from '../postgres/ping.ts'
import { time } from '../postgres/time.ts'
import type { Services } from '../services.ts'
import { lockHosts } from '../store/capacity/holds.ts'
import { doesAnyHostFit } from '../store/compute/host-locks.ts'
import { lockAnyVm, type VmRow } from '../store/compute/vms.ts'
import {
  isMassFault,
  listFaultyVms,
  listGpusOfVm,
  listNewHostFaults,
  listPausedVms,
  listReplaceableVms,
  listXidPositions,
  markSuspect,
  recordFault,
  setXidPosition,
  type VmGpu,
} from '../store/fleet/gpu-health.ts'
import { findLocation } from '../store/fleet/locations.ts'

const longestPauseMs = 24 * 3_600_000

/** Records the GPU faults that the hosts of a location have found since the last time. */
export async function applyHostFaults({ database, config }: Services, location: string): Promise<void> {
  const chosen = config.health.meanings
  for (const { gpu_id, host_id, vm_id, xid, at } of await listNewHostFaults(database, location))
    await database.transaction(async (tx) => {
      const vm = vm_id === null ? undefined : await lockAnyVm(tx, vm_id)
      await lockHosts(tx, [host_id])
      const gpus = vm ? await listGpusOfVm(tx, vm.id) : []
      const gpuIndex = gpus.findIndex(({ id }) => id === gpu_id)
      const fault: Fault = { xid, gpuIndex, source: 'host', at: time(at) }
      // The VM has released the GPU in the meantime, or no VM had it.
      if (!vm || gpuIndex < 0) {
        await recordFault(tx, { ...fault, gpuId: gpu_id, vmId: null, isSuspect: true })
        return
      }
      const reasons = await recordFaults(tx, vm, gpus, [fault], chosen)
      if (reasons.length === 0) return
      await changeHealth(tx, vm, [...(vm.health?.reasons ?? []), ...reasons], gpus[gpuIndex]!.isLost)
    })
}

/**
 * Records what guests report about their GPUs. These reports change the health of VMs, but never their
 * billing.
 */
export async function applyGuestReports(
  { database, config, log }: Services,
  location: string,
  samples: VmSample[],
): Promise<void> {
  const healthByVm = new Map((await listFaultyVms(database, location)).map(({ id, health }) => [id, health]))
  const withXids = samples.filter(({ guest }) => guest && guest.xids.length > 0).map(({ vmId }) => vmId)
  const positions = withXids.length > 0 ? await listXidPositions(database, withXids) : []
  const positionOf = new Map(positions.map((each) => [each.vm_id, each]))
  for (const { vmId, guest } of samples) {
    if (!guest) continue
    const health = healthByVm.get(vmId) ?? null
    const { boot, position } = positionOf.get(vmId) ?? { boot: '', position: -1 }
    const isNew = guest.xids.some((each) => guest.boot !== boot || each.position > position)
    const isReasonNew = driverReasons(guest.gpus, '').some((reason) => !hasReason(health, reason))
    const isRecovered =
      health !== null && withoutRecovered(health.reasons, guest.gpus).length < health.reasons.length
    if (isNew || isReasonNew || isRecovered)
      await database
        .transaction((tx) => applyGuestReport(tx, vmId, guest, config.health.meanings))
        .catch((error) => log.warn({ err: error, vm: vmId }, 'guest report not applied'))
  }
}

async function applyGuestReport(
  tx: Tx,
  vmId: string,
  guest: GuestReport,
  chosen: Services['config']['health']['meanings'],
): Promise<void> {
  const vm = await lockAnyVm(tx, vmId)
  if (vm?.state !== 'STATE_RUNNING') return
  const gpus = await listGpusOfVm(tx, vmId)
  await lockHosts(tx, [...new Set(gpus.map(({ host_id }) => host_id))])
  const now = time(await readServiceTime(tx))
  const reasons = await recordFaults(tx, vm, gpus, await newFaults(tx, vmId, guest, now), chosen)
  const fromDriver = driverReasons(guest.gpus.slice(0, gpus.length), now)
  await suspectGpus(tx, gpus, fromDriver)
  const known = vm.health?.reasons ?? []
  const added = [...reasons, ...fromDriver].filter((reason) => !hasReason(vm.health, reason))
  await changeHealth(tx, vm, withoutRecovered([...known, ...added], guest.gpus))
}

async function newFaults(tx: Tx, vmId: string, guest: GuestReport, at: string): Promise<Fault[]> {
  const [seen] = await listXidPositions(tx, [vmId])
  const isNew = ({ position }: { position: number }) =>
    seen?.boot !== guest.boot || position > Number(seen.position)
  const xids = guest.xids.filter(isNew)
  const last = Math.max(...xids.map(({ position }) => position))
  if (xids.length > 0) await setXidPosition(tx, vmId, guest.boot, last)
  return xids.map(({ xid, gpuIndex }) => ({ xid, gpuIndex, source: 'guest', at }))
}

async function suspectGpus(tx: Tx, gpus: VmGpu[], reasons: { gpu_index: number }[]): Promise<void> {
  for (const { gpu_index } of reasons) {
    const gpu = gpus[gpu_index]
    if (gpu) await markSuspect(tx, gpu.id)
  }
}

/**
 * Replaces unhealthy VMs whose policy is `replace`, unless the faults in the location have a common cause.
 */
export async function replaceUnhealthyVms({ database, log }: Services, location: string): Promise<void> {
  const vms = await listReplaceableVms(database, location)
  if (vms.length === 0 || (await isMassFault(database, location))) return
  for (const vm of vms)
    await replaceByPolicy(database, vm).catch((error) =>
      log.info({ err: error, vm: vm.id }, 'unhealthy VM not replaced yet, will retry'),
    )
}

/**
 * Resumes billing of VMs whose GPU is back, whose pause has lasted a day, or whose pause has lasted an hour and
 * that could be replaced now because other GPUs are available. `listPausedVms` checks the hour.
 */
export async function resumePausedBilling({ database }: Services, location: string): Promise<void> {
  for (const { id } of await listPausedVms(database, location))
    await database.transaction(async (tx) => {
      const vm = await lockAnyVm(tx, id)
      if (!vm?.billing_paused_at || vm.state === 'STATE_UNREACHABLE') return
      const isLost = (await listGpusOfVm(tx, id)).some((gpu) => gpu.isLost)
      const pausedMs = (await readServiceTime(tx)).getTime() - vm.billing_paused_at.getTime()
      if (!isLost || pausedMs >= longestPauseMs || (await couldBeReplaced(tx, vm)))
        await resumeBilling(tx, vm)
    })
}

async function couldBeReplaced(tx: Tx, vm: VmRow): Promise<boolean> {
  const { family, gpuCount } = vmType(vm.type)!
  const isLocal = (await findLocation(tx, vm.location))?.storage === 'local'
  const allowedHosts = isLocal && vm.host_id ? [vm.host_id] : null
  return doesAnyHostFit(tx, { location: vm.location, family, gpuCount, allowedHosts }, [])
}
