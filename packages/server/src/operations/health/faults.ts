import { type HealthReason, vmStateTable } from '@slipway/contract'
import { type Fault, healthOf, reasonOf } from '../../domain/health/health.ts'
import { makesSuspect, meaningOf, type XidMeanings } from '../../domain/health/xids.ts'
import type { Tx } from '../../postgres/database.ts'
import { readServiceTime } from '../../postgres/ping.ts'
import { time } from '../../postgres/time.ts'
import { closeUsage } from '../../store/billing/usage.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { emit } from '../../store/events/events.ts'
import {
  readRecentFaults,
  recordFault,
  setBillingPaused,
  setVmHealth,
  type VmGpu,
} from '../../store/fleet/gpu-health.ts'
import { openVmUsage } from '../vm/state.ts'

/** Limits how many rows a guest can cause by reporting errors endlessly. */
const maxGuestFaultsPerDay = 50
const resetLimit = 2

/**
 * Records faults of a VM's GPUs and notifies its tenant. Returns the reasons that determine the VM's health.
 * The transaction has locked the VM and the host of its GPUs.
 */
export async function recordFaults(
  tx: Tx,
  vm: VmRow,
  gpus: VmGpu[],
  faults: Fault[],
  chosen: XidMeanings,
): Promise<HealthReason[]> {
  const reasons: HealthReason[] = []
  for (const fault of faults) {
    const { xid, gpuIndex, source, at } = fault
    const gpu = gpus[gpuIndex]
    if (!gpu) continue
    const recent = (await readRecentFaults(tx, gpu.id, vm.id))!
    if (source === 'guest' && recent.guest_faults >= maxGuestFaultsPerDay) continue
    const isSuspect = makesSuspect(xid, chosen)
    if (!(await recordFault(tx, { gpuId: gpu.id, vmId: vm.id, xid, source, at, isSuspect }))) continue
    const wasResetTwice =
      recent.resets >= resetLimit &&
      recent.xids_before_start.some((before) => meaningOf(before, chosen) === 'reset')
    const reason = reasonOf(fault, { chosen, wasResetTwice })
    await emitOf(tx, vm, 'gpu.fault', { ...reason })
    reasons.push(reason)
  }
  return reasons
}

/**
 * Changes the health of a VM and notifies its tenant. If the host has lost one of the VM's GPUs, billing is
 * paused. The transaction has locked the VM.
 */
export async function changeHealth(
  tx: Tx,
  vm: VmRow,
  reasons: HealthReason[],
  isGpuLost = false,
): Promise<void> {
  const now = await readServiceTime(tx)
  const health = healthOf(vm.health, reasons, time(now))
  if (health || vm.health) await setVmHealth(tx, vm.id, health && JSON.stringify(health))
  const pauses = isGpuLost && isMetered(vm)
  if (pauses) {
    // The pause is set first, because the meter of a reserved address depends on it.
    await setBillingPaused(tx, vm.id, now)
    await closeUsage(tx, vm.id)
  }
  if (!pauses && vm.health?.status === health?.status) return
  await emitOf(tx, vm, 'vm.health_changed', {
    status: health?.status ?? 'healthy',
    reasons: health?.reasons ?? [],
    ...(pauses && { billing_paused_at: time(now) }),
  })
}

/** Resumes the VM's billing. The transaction has locked the VM. */
export async function resumeBilling(tx: Tx, vm: VmRow): Promise<void> {
  const isBilled = vmStateTable[vm.state].isBilled && !vm.os_disk_lost_at
  if (isBilled && vm.metered_since === null) await openVmUsage(tx, vm)
  await setBillingPaused(tx, vm.id, null)
  await emitOf(tx, vm, 'vm.health_changed', {
    status: vm.health?.status ?? 'healthy',
    reasons: vm.health?.reasons ?? [],
    billing_paused_at: '',
  })
}

const isMetered = (vm: VmRow): boolean =>
  vmStateTable[vm.state].isBilled && !vm.os_disk_lost_at && !vm.billing_paused_at

const emitOf = (
  tx: Tx,
  { id, project_id, name, labels }: VmRow,
  type: 'gpu.fault' | 'vm.health_changed',
  data: Record<string, unknown>,
): Promise<void> =>
  emit(tx, {
    type,
    resourceType: 'vm',
    resourceId: id,
    projectId: project_id,
    data: { name, labels, ...data },
  })
