import { vmStates } from '@slipway/contract'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import { closeUsage } from '../../store/billing/usage.ts'
import { insertOperations, type OperationRow } from '../../store/compute/operations.ts'
import { quarantineGpus } from '../../store/compute/placement.ts'
import { giveBackQuota } from '../../store/compute/quotas.ts'
import { hideVm, moveVmsToDeleting } from '../../store/compute/vm-changes.ts'
import { findAnyVm, type VmRow } from '../../store/compute/vms.ts'
import type { Tx } from '../../store/database.ts'
import type { Requester } from '../../store/events/events.ts'
import { wantFirewallsNaming } from '../../store/network/firewalls.ts'
import { awaitCancelled, makeWayForDeletions, operationOf, type ProjectRequester } from '../admission.ts'
import { closeOsDiskUsages } from './os-disk.ts'
import { causeOf, changeVmRows, emitVm, emitVms, forgetVms, heldQuota } from './state.ts'
import { lockVmsOf, removeVm, vmOf } from './vm.ts'

/** A VM that is locked, and who wants it gone. */
interface VmDeletion {
  by: ProjectRequester
  vm: VmRow
}

/** Always possible: cancels what is under way. Asked again, the same operation. */
export async function admitVmDeletes(tx: Tx, requests: VmDeletion[]): Promise<OperationRow[]> {
  const underWay = await makeWayForDeletions(
    tx,
    vmDelete,
    requests.map(({ by, vm }) => ({ by, resourceId: vm.id })),
  )
  const begun = await begin(
    tx,
    requests.filter((_, index) => !underWay[index]),
  )
  return requests.map(({ vm }, index) => underWay[index] ?? begun.get(vm.id)!)
}

async function begin(tx: Tx, requests: VmDeletion[]): Promise<Map<string, OperationRow>> {
  if (requests.length === 0) return new Map()
  const ids = requests.map(({ vm }) => vm.id)
  const changes = requests.map(({ by, vm }) => ({ vm, cause: by }))
  // The operation itself tells of it.
  const generations = await changeVmRows(tx, changes, 'STATE_DELETING', {
    from: [...vmStates],
    isQuiet: true,
    move: (from) => moveVmsToDeleting(tx, ids, from),
  })
  const operations = await insertOperations(
    tx,
    requests.map(({ by, vm }) =>
      operationOf(by, vmDelete, {
        resourceId: vm.id,
        location: vm.location,
        generation: generations.get(vm.id)!,
        request: {},
        eventType: 'vm.deleting',
        eventData: { name: vm.name, labels: vm.labels },
      }),
    ),
  )
  return new Map(operations.map((operation) => [operation.resource_id, operation]))
}

export const admitVmDelete = async (tx: Tx, by: ProjectRequester, vm: VmRow): Promise<OperationRow> =>
  (await admitVmDeletes(tx, [{ by, vm }]))[0]!

export const vmDelete: Definition = {
  kind: 'vm-delete',
  name: 'DELETE',
  resourceType: 'vm',
  deadlineS: 'configured',
  isTeardown: true,
  steps: [
    { name: 'settle', call: awaitCancelled },
    { name: 'remove', call: remove },
    { name: 'release', txAll: release },
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

async function release(works: Work[], tx: Tx): Promise<Outcome[]> {
  const vms = await lockVmsOf(works, tx)
  const isAway = (index: number) => works[index]!.scratch.isHostAway === true
  for (const [index, vm] of vms.entries()) if (isAway(index)) await hide(tx, vm)
  await forgetVms(
    tx,
    vms.filter((_, index) => !isAway(index)),
  )
  const changes = vms.map((vm, index) => ({ vm, cause: causeOf(works[index]!) }))
  await emitVms(tx, changes, 'vm.deleted')
  return works.map(() => done(null))
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
  await closeOsDiskUsages(tx, [vm])
  await wantFirewallsNaming(tx, [vm])
  await hideVm(tx, vm.id)
  await giveBackQuota(tx, vm.project_id, heldQuota(vm, released))
}
