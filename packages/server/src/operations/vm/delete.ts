import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import { closeUsage } from '../../store/billing/usage.ts'
import { shrinkGroup } from '../../store/compute/instance-groups.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { quarantineGpus } from '../../store/compute/placement.ts'
import { releaseQuota } from '../../store/compute/quotas.ts'
import { hideVm } from '../../store/compute/vm-changes.ts'
import { lockAnyVm, type VmRow } from '../../store/compute/vms.ts'
import type { Requester } from '../../store/events/events.ts'
import { markReferringFirewallsOutdated } from '../../store/network/firewalls.ts'
import { emitUnassigned } from '../address/events.ts'
import {
  beginOperation,
  cancelForDeletion,
  type ProjectRequester,
  waitForCancelledOperations,
} from '../admission.ts'
import { updateGroupHealthOf } from '../group/health.ts'
import { closeOsDiskUsage } from './os-disk.ts'
import { causeOf, emitVm, forgetVm, heldQuota, moveToDeleting } from './state.ts'
import { lockVmOf, removeVm, vmOf } from './vm.ts'

/**
 * Admits the deletion of a VM and cancels the VM's unfinished operations. A repeated request gets the same
 * deletion. The caller has locked the VM.
 */
export async function admitVmDelete(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  { isByGroup = false } = {},
): Promise<BegunOperation> {
  const deletion = await cancelForDeletion(tx, vmDelete, by, vm.id)
  if (deletion) return deletion
  // If the group deletes the member, the group's size has already been changed.
  if (vm.group_id !== null && !isByGroup) await shrinkGroup(tx, vm.group_id)
  return beginOperation(tx, by, vmDelete, {
    resource: vm,
    generation: await moveToDeleting(tx, vm),
    ...(vm.group_id !== null && { scratch: { memberOf: vm.group_id } }),
    eventType: 'vm.deleting',
  })
}

export const vmDelete: Definition = {
  kind: 'vm-delete',
  name: 'DELETE',
  resourceType: 'vm',
  deadlineS: 'configured',
  isRetriedNotUndone: true,
  steps: [
    { name: 'wait_for_cancelled', call: waitForCancelledOperations },
    { name: 'remove', call: remove },
    { name: 'release', tx: release, isShared: true },
  ],
  onAbandon: hideAbandoned,
}

/** If the host is down, the engine cannot remove the VM; the next step hides it instead. */
async function remove(work: Work): Promise<Outcome> {
  const vm = await vmOf(work)
  if (vm.host_state === 'down') return next({ isHostAway: true })
  await removeVm(work, vm)
  return next()
}

async function release(work: Work, tx: Tx): Promise<Outcome> {
  const vm = await lockVmOf(work, tx)
  if (work.scratch.isHostAway === true) await hide(tx, vm)
  else {
    await forgetVm(tx, vm)
    await emitUnassigned(tx, vm, causeOf(work))
  }
  await emitVm(tx, vm, 'vm.deleted', causeOf(work))
  await updateGroupHealthOf(tx, vm)
  return done(null)
}

async function hideAbandoned(tx: Tx, by: Requester, operation: OperationRow): Promise<void> {
  const vm = await lockAnyVm(tx, operation.resource_id)
  if (!vm) return
  await hide(tx, vm)
  await emitVm(tx, vm, 'vm.deleted', { ...by, operationId: operation.id })
}

/**
 * Hides the VM from its tenant. Its name and quota become free immediately. Its GPUs, disks and addresses
 * become free when a host report shows that the VM was removed.
 */
async function hide(tx: Tx, vm: VmRow): Promise<void> {
  const [released] = await quarantineGpus(tx, [vm.id])
  await closeUsage(tx, vm.id)
  await closeOsDiskUsage(tx, vm)
  await markReferringFirewallsOutdated(tx, [vm])
  await hideVm(tx, vm.id)
  await releaseQuota(tx, vm.project_id, heldQuota(vm, released!))
}
