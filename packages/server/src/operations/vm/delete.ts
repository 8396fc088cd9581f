import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import { closeUsage } from '../../store/billing/usage.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { quarantineGpus } from '../../store/compute/placement.ts'
import { giveBackQuota } from '../../store/compute/quotas.ts'
import { hideVm } from '../../store/compute/vm-changes.ts'
import { findAnyVm, type VmRow } from '../../store/compute/vms.ts'
import type { Requester } from '../../store/events/events.ts'
import { wantFirewallsNaming } from '../../store/network/firewalls.ts'
import { awaitCancelled, beginOperation, makeWayForDeletion, type ProjectRequester } from '../admission.ts'
import { closeOsDiskUsage } from './os-disk.ts'
import { causeOf, emitVm, forgetVm, heldQuota, moveToDeleting } from './state.ts'
import { lockVmOf, removeVm, vmOf } from './vm.ts'

/** Always possible: cancels what is under way. A repeated request gets the same operation. The VM is locked. */
export async function admitVmDelete(tx: Tx, by: ProjectRequester, vm: VmRow): Promise<BegunOperation> {
  const deletion = await makeWayForDeletion(tx, vmDelete, by, vm.id)
  if (deletion) return deletion
  return beginOperation(tx, by, vmDelete, {
    resourceId: vm.id,
    location: vm.location,
    generation: await moveToDeleting(tx, vm),
    request: {},
    eventType: 'vm.deleting',
    eventData: { name: vm.name, labels: vm.labels },
  })
}

export const vmDelete: Definition = {
  kind: 'vm-delete',
  name: 'DELETE',
  resourceType: 'vm',
  deadlineS: 'configured',
  isTeardown: true,
  steps: [
    { name: 'settle', call: awaitCancelled },
    { name: 'remove', call: remove },
    { name: 'release', tx: release, isShared: true },
  ],
  onAbandon: hideAbandoned,
}

/** A host that is away cannot be asked: its VM is hidden instead. */
async function remove(work: Work): Promise<Outcome> {
  const vm = await vmOf(work)
  if (vm.host_state === 'down') return next({ isHostAway: true })
  await removeVm(work, vm)
  return next()
}

async function release(work: Work, tx: Tx): Promise<Outcome> {
  const vm = await lockVmOf(work, tx)
  if (work.scratch.isHostAway === true) await hide(tx, vm)
  else await forgetVm(tx, vm)
  await emitVm(tx, vm, 'vm.deleted', causeOf(work))
  return done(null)
}

/** Gone for its tenant, and kept from others until a report of its host shows it gone. */
async function hideAbandoned(tx: Tx, by: Requester, operation: OperationRow): Promise<void> {
  const vm = await findAnyVm(tx, operation.resource_id)
  if (!vm) return
  await hide(tx, vm)
  await emitVm(tx, vm, 'vm.deleted', { ...by, operationId: operation.id })
}

/** Name and quota are free at once; GPUs, disks and addresses stay until the host is back and the VM proven gone. */
async function hide(tx: Tx, vm: VmRow): Promise<void> {
  const released = await quarantineGpus(tx, vm.id)
  await closeUsage(tx, vm.id)
  await closeOsDiskUsage(tx, vm)
  await wantFirewallsNaming(tx, [vm])
  await hideVm(tx, vm.id)
  await giveBackQuota(tx, vm.project_id, heldQuota(vm, released))
}
