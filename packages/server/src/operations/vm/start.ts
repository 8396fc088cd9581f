import { gpuQuota, vmActions, vmType } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import type { Definition, Work } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { setVmHost, spendVmTtl } from '../../store/compute/vm-changes.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { findLocation } from '../../store/fleet/locations.ts'
import { type ProjectRequester, requireQuota } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { beginVmAction } from './action.ts'
import { bootDeadline, bootVm, finishBoot, whyNotStarted } from './boot.ts'
import { placeExistingVm } from './place.ts'
import { causeOf, changeVmState, leaveToReconciler, releaseGpus } from './state.ts'
import { powerOffVm, vmOf } from './vm.ts'

/** A stopped VM gave its GPUs back: starting claims anew, possibly on another host if storage allows. */
export async function admitVmStart(tx: Tx, by: ProjectRequester, vm: VmRow): Promise<BegunOperation> {
  const refusal = await budgetRefusal(tx, by.projectId)
  const type = vmType(vm.type)!
  const operation = await beginVmAction(tx, by, vmStart, vm, 'START')
  await spendVmTtl(tx, vm.id)
  // It will fail and say why: nothing is claimed for it.
  if (vm.os_disk_lost_at) return operation
  const location = await findLocation(tx, vm.location)
  const allowedHosts = location?.storage === 'local' && vm.host_id ? [vm.host_id] : null
  const { hostId } = await placeExistingVm(tx, vm.id, type, vm.location, allowedHosts)
  await setVmHost(tx, vm.id, hostId)
  if (refusal) throw refusal
  await requireQuota(tx, by.projectId, { [gpuQuota(type.family)]: type.gpuCount })
  return operation
}

export const vmStart: Definition = {
  kind: 'vm-start',
  name: 'START',
  resourceType: 'vm',
  deadlineS: 'configured',
  steps: [
    { name: 'admit', undoTx: backToShutoff },
    { name: 'boot', call: bootVm, undoCall: powerOff, onDeadline: bootDeadline },
    { name: 'finish', tx: finishBoot, isShared: true, onUnmet: whyNotStarted },
  ],
  onAbandon: leaveToReconciler,
}

async function powerOff(work: Work): Promise<void> {
  await powerOffVm(work, await vmOf(work))
}

async function backToShutoff(work: Work, tx: Tx): Promise<void> {
  const vm = await vmOf(work, tx)
  const from = [vmActions.START.via]
  if (await changeVmState(tx, vm, 'STATE_SHUTOFF', { from, cause: causeOf(work) })) await releaseGpus(tx, vm)
}
