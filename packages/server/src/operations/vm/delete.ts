import { type VmState, vmStates } from '@slipway/contract'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import { closeUsage } from '../../store/billing/usage.ts'
import type { OperationRow } from '../../store/compute/operations.ts'
import { quarantineGpus } from '../../store/compute/placement.ts'
import { giveBackQuota } from '../../store/compute/quotas.ts'
import { findAnyVm, hideVm, raiseVmGeneration, type VmRow } from '../../store/compute/vms.ts'
import type { Tx } from '../../store/database.ts'
import type { Requester } from '../../store/events/events.ts'
import { wantFirewallsNaming } from '../../store/network/firewalls.ts'
import { awaitCancelled, beginOperation, makeWayForDeletion, type ProjectRequester } from '../admission.ts'
import { causeOf, changeVmState, emitVm, forgetVm, gpuAmount } from './state.ts'
import { removeVm, vmOf } from './vm.ts'

const fromAnywhere = vmStates.filter((state): state is VmState => state !== 'STATE_DELETING')

/** Always possible: cancels what is under way. Asked again, the same operation. */
export async function admitVmDelete(tx: Tx, by: ProjectRequester, vm: VmRow): Promise<OperationRow> {
  const underWay = await makeWayForDeletion(tx, by, vmDelete, vm.id)
  if (underWay) return underWay
  const cause = { actor: by.actor, requestId: by.requestId, clientAddress: by.clientAddress }
  await changeVmState(tx, vm, 'STATE_DELETING', { from: fromAnywhere, isQuiet: true, cause })
  return beginOperation(tx, by, vmDelete, {
    resourceId: vm.id,
    location: vm.location,
    generation: await raiseVmGeneration(tx, vm.id),
    request: {},
    eventType: 'vm.deleting',
    eventData: { name: vm.name },
  })
}

export const vmDelete: Definition = {
  kind: 'vm-delete',
  name: 'DELETE',
  resourceType: 'vm',
  deadlineS: 'configured',
  isTeardown: true,
  steps: [
    { name: 'settle', tx: awaitCancelled },
    { name: 'remove', call: remove },
    { name: 'release', tx: release },
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
  const vm = await vmOf(work, tx)
  if (work.scratch.isHostAway) await hide(tx, vm)
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
  await wantFirewallsNaming(tx, vm.project_id, vm.id)
  await hideVm(tx, vm.id)
  await giveBackQuota(tx, vm.project_id, { vms: 1, ...gpuAmount(vm, released) })
}
