import { gpuQuota, vmActions, vmType } from '@slipway/contract'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import type { Definition, Work } from '../../runner/operation.ts'
import { type Hold, placeOnHold } from '../../store/capacity/holds.ts'
import { setReservationOfVm } from '../../store/capacity/reservations.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { claimGpus, findOwnGpus } from '../../store/compute/placement.ts'
import { clearExpiredTtl, setVmHost } from '../../store/compute/vm-changes.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { findLocation } from '../../store/fleet/locations.ts'
import { type ProjectRequester, requireQuota } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { requeueAfterFailedBoot } from '../capacity/boot-failures.ts'
import { placeInReservations } from '../capacity/reserved-placement.ts'
import { beginVmAction } from './action.ts'
import { bootDeadline, bootVm, finishBoot, whyNotStarted } from './boot.ts'
import { type Placement, placeVm } from './place.ts'
import { typeOutOfStock } from './refusals.ts'
import { causeOf, changeVmState, leaveToReconciler, releaseGpus } from './state.ts'
import { powerOffVm, vmOf } from './vm.ts'

/**
 * A stopped VM has no GPUs. This claims the GPUs of the `hold`. Without a hold, it claims GPUs of a
 * reservation, or the VM's previous GPUs if they are still in quarantine, or free GPUs, possibly on another host
 * if the VM's disks are not local. The previous GPUs come before free ones, because no other VM can use them
 * yet. This leaves the free GPUs for other VMs.
 */
export async function admitVmStart(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  hold?: Hold,
): Promise<BegunOperation> {
  const overBudget = await budgetRefusal(tx, by.projectId)
  const type = vmType(vm.type)!
  const operation = await beginVmAction(tx, by, vmStart, vm, 'START')
  await clearExpiredTtl(tx, vm.id)
  // The operation will fail at its first step and say why, so nothing needs to be claimed.
  if (vm.os_disk_lost_at) return operation
  const location = await findLocation(tx, vm.location)
  const allowedHosts = location?.storage === 'local' && vm.host_id ? [vm.host_id] : null
  const { family, gpuCount } = type
  const wanted = { location: vm.location, family, gpuCount, allowedHosts }
  const placement: Placement | undefined = hold
    ? await placeOnHold(tx, { ...hold, gpuCount })
    : ((await placeInReservations(tx, { projectId: vm.project_id, id: null }, wanted))[0] ??
      (await findOwnGpus(tx, vm.id, gpuCount)) ??
      (await placeVm(tx, wanted)))
  if (!placement) throw hold ? new TryAgain('the hold was lost') : await typeOutOfStock(tx, type, vm.location)
  await claimGpus(tx, { vmId: vm.id, ...placement })
  if (placement.reservationId) await setReservationOfVm(tx, vm.id, placement.reservationId)

  await setVmHost(tx, vm.id, placement.hostId)
  if (overBudget) throw overBudget
  await requireQuota(tx, by.projectId, { [gpuQuota(family)]: gpuCount })
  return operation
}

export const vmStart: Definition = {
  kind: 'vm-start',
  name: 'START',
  resourceType: 'vm',
  deadlineS: 'configured',
  steps: [
    { name: 'admit', undoTx: returnToShutoff },
    { name: 'boot', call: bootVm, undoCall: powerOffVm, onDeadline: bootDeadline },
    { name: 'finish', tx: finishBoot, isShared: true, onUnexpectedState: whyNotStarted },
  ],
  onAbandon: leaveToReconciler,
}

async function returnToShutoff(work: Work, tx: Tx): Promise<void> {
  const vm = await vmOf(work, tx)
  const from = [vmActions.START.via]
  if (await changeVmState(tx, vm, 'STATE_SHUTOFF', { from, cause: causeOf(work) })) await releaseGpus(tx, vm)
  await requeueAfterFailedBoot(tx, work.operation.id)
}
