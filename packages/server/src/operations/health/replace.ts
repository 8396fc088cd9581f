import { type VmState, vmType } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { type Definition, fail, next, type Outcome, type Work } from '../../runner/operation.ts'
import { endHolds, type Hold, listHeldGpus, lockHosts, placeOnHold } from '../../store/capacity/holds.ts'
import { claimHeld, holdForOperation } from '../../store/capacity/operation-holds.ts'
import { scheduleReservationCheck, setReservationOfGpus } from '../../store/capacity/reservations.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { quarantineGpus } from '../../store/compute/placement.ts'
import { clearVmSshDestination, markVmsReplaced, setVmHost } from '../../store/compute/vm-changes.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { findLocation } from '../../store/fleet/locations.ts'
import type { ProjectRequester } from '../admission.ts'
import { offerGpus } from '../capacity/offer.ts'
import { placeInReservations } from '../capacity/reserved-placement.ts'
import { beginVmAction } from '../vm/action.ts'
import { bootDeadline, bootVm, finishBoot, whyNotStarted } from '../vm/boot.ts'
import { type Placement, placeVm } from '../vm/place.ts'
import { typeOutOfStock } from '../vm/refusals.ts'
import { causeOf, changeVmState, emitVm, leaveToReconciler, releaseGpus } from '../vm/state.ts'
import { powerOff, shutDown } from '../vm/stop.ts'
import { lockVmOf, osDiskLost, powerOffVm, vmOf } from '../vm/vm.ts'

/**
 * Moves a VM to other GPUs. The new GPUs are held before the VM stops, so that the VM does not give up its GPUs
 * without getting others. The quota of the old GPUs is used for the new ones.
 */
export async function admitVmReplace(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  hold?: Hold,
): Promise<BegunOperation> {
  if (vm.os_disk_lost_at) throw new Failure('conflict', osDiskLost().message)
  const operation = await beginVmAction(tx, by, vmReplace, vm, 'REPLACE')
  const placement = await placeElsewhere(tx, vm, hold)
  if (!placement)
    throw hold ? new TryAgain('the hold was lost') : await typeOutOfStock(tx, vmType(vm.type)!, vm.location)
  await holdForOperation(tx, operation.id, placement)
  return operation
}

/** A VM in a reservation may also use free GPUs of that reservation. */
async function placeElsewhere(tx: Tx, vm: VmRow, hold?: Hold): Promise<Placement | undefined> {
  const { family, gpuCount } = vmType(vm.type)!
  if (hold) return placeOnHold(tx, { ...hold, gpuCount })
  const isLocal = (await findLocation(tx, vm.location))?.storage === 'local'
  const allowedHosts = isLocal && vm.host_id ? [vm.host_id] : null
  const wanted = { location: vm.location, family, gpuCount, allowedHosts }
  const free = await placeVm(tx, wanted)
  if (free || !vm.reservation_id) return free
  return (await placeInReservations(tx, { projectId: vm.project_id, id: vm.reservation_id }, wanted))[0]
}

export const vmReplace: Definition = {
  kind: 'vm-replace',
  name: 'REPLACE',
  resourceType: 'vm',
  deadlineS: 'configured',
  steps: [
    { name: 'admit', undoTx: restoreState },
    { name: 'shut_down', call: shutDown },
    { name: 'power_off', call: powerOffAndRecord },
    { name: 'switch', tx: switchGpus, undoTx: stayOff },
    { name: 'boot', call: bootVm, undoCall: powerOffVm, onDeadline: bootDeadline },
    { name: 'finish', tx: finish, isShared: true, onUnexpectedState: whyNotStarted },
  ],
  onAbandon: leaveToReconciler,
}

async function powerOffAndRecord(work: Work): Promise<Outcome> {
  const outcome = await powerOff(work)
  return outcome.flow === 'next' ? next({ isOff: true }) : outcome
}

/** Moves the VM's GPUs to quarantine, and gives the VM the GPUs that are held for the operation. */
async function switchGpus(work: Work, tx: Tx): Promise<Outcome> {
  const vm = await lockVmOf(work, tx)
  if (vm.state === 'STATE_STARTING') return next()
  const { id: operationId } = work.operation
  const hostIds = (await listHeldGpus(tx, operationId)).map(({ host_id }) => host_id)
  await lockHosts(tx, [...new Set([...hostIds, ...(vm.host_id ? [vm.host_id] : [])])])
  const held = await listHeldGpus(tx, operationId)
  if (held.length !== vm.gpu_count)
    return fail('out_of_stock', 'The host of the new GPUs no longer accepts VMs. Start the VM again.')
  const cause = causeOf(work)
  if (!(await changeVmState(tx, vm, 'STATE_SHUTOFF', { cause })))
    throw new Failure('conflict', `The VM changed to ${vm.state} in the meantime.`)
  const { reservation_id: reservationId } = vm
  // The reservation gets other GPUs, because the VM's old GPUs may be faulty.
  if (reservationId) await setReservationOfGpus(tx, vm.id, null)
  await quarantineGpus(tx, [vm.id])
  await claimHeld(tx, { operationId, vmId: vm.id, reservationId })
  if (reservationId) await scheduleReservationCheck(tx, reservationId)
  await clearVmSshDestination(tx, vm.id)
  await setVmHost(tx, vm.id, held[0]!.host_id)
  const off = { ...vm, state: 'STATE_SHUTOFF' as const, billing_paused_at: null }
  await changeVmState(tx, off, 'STATE_STARTING', { cause })
  return next()
}

async function finish(work: Work, tx: Tx): Promise<Outcome> {
  const vm = await vmOf(work, tx)
  await tx.enqueue(markVmsReplaced, vm.id)
  await emitVm(tx, vm, 'vm.replaced', causeOf(work))
  return finishBoot(work, tx)
}

/** Leaves the VM off, because it did not start on its new GPUs. */
async function stayOff(work: Work, tx: Tx): Promise<void> {
  const vm = await lockVmOf(work, tx)
  await markOff(work, tx, vm, 'STATE_STARTING')
}

/** A running VM continues on its GPUs; one that is off stays off. */
async function restoreState(work: Work, tx: Tx): Promise<void> {
  const vm = await lockVmOf(work, tx)
  const from: VmState[] = ['STATE_STOPPING']
  if (work.scratch.isOff === true) await markOff(work, tx, vm, 'STATE_STOPPING')
  else await changeVmState(tx, vm, work.scratch.from as VmState, { from, cause: causeOf(work) })
  await freeOperationHold(tx, work.operation.id)
}

async function markOff(work: Work, tx: Tx, vm: VmRow, from: VmState): Promise<void> {
  const cause = { ...causeOf(work), detail: work.failure?.message ?? '' }
  if (!(await changeVmState(tx, vm, 'STATE_SHUTOFF', { from: [from], cause: causeOf(work) }))) return
  await clearVmSshDestination(tx, vm.id)
  await releaseGpus(tx, vm)
  await emitVm(tx, vm, 'vm.replace_failed', cause)
}

/** Ends the hold of an operation that did not use it. */
export async function freeOperationHold(tx: Tx, operationId: string): Promise<void> {
  const hostIds = [...new Set((await listHeldGpus(tx, operationId)).map(({ host_id }) => host_id))]
  if (hostIds.length === 0) return
  await lockHosts(tx, hostIds)
  await endHolds(tx, operationId, hostIds)
  await offerGpus(tx, hostIds)
}
