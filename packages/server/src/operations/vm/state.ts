import { type EventType, gpuQuota, type VmState, vmStates, vmStateTable, vmType } from '@slipway/contract'
import { isAssertionFailure, type Tx } from '../../postgres/database.ts'
import { gatheredChange } from '../../postgres/gathered.ts'
import { UnexpectedState, type Work } from '../../runner/operation.ts'
import { closeUsage, openUsage } from '../../store/billing/usage.ts'
import { reservedProduct, setReservationOfVm } from '../../store/capacity/reservations.ts'
import type { OperationRow } from '../../store/compute/operation-row.ts'
import { quarantineGpus } from '../../store/compute/placement.ts'
import { releaseQuota } from '../../store/compute/quotas.ts'
import {
  deleteVmRows,
  moveVms,
  moveVmsToDeleting,
  moveVmsToRunning,
  recordOsDisk,
  type StartedVm,
} from '../../store/compute/vm-changes.ts'
import { findAnyVm, type VmRow } from '../../store/compute/vms.ts'
import { emit, type Requester } from '../../store/events/events.ts'
import { holdAddresses } from '../../store/network/addresses.ts'
import { markReferringFirewallsOutdated } from '../../store/network/firewalls.ts'
import { updateGroupHealthOf } from '../group/health.ts'
import { forgetNewDisks } from './new-disks.ts'
import { closeOsDiskUsage, openOsDiskUsage, osDiskQuota } from './os-disk.ts'

export interface Cause {
  actor: string
  requestId: string
  /** Set if a request causes the change directly. */
  clientAddress?: string
  operationId?: string
  detail?: string
}

export const causeOf = ({ operation }: Work): Cause => ({
  actor: operation.actor,
  requestId: operation.request_id,
  operationId: operation.id,
})

const eventNames: Record<VmState, EventType> = {
  STATE_CREATING: 'vm.creating',
  STATE_RUNNING: 'vm.running',
  STATE_STOPPING: 'vm.stopping',
  STATE_SHUTOFF: 'vm.shutoff',
  STATE_STARTING: 'vm.starting',
  STATE_RESETTING: 'vm.resetting',
  STATE_CRASHED: 'vm.crashed',
  STATE_UNREACHABLE: 'vm.unreachable',
  STATE_DELETING: 'vm.deleting',
}

export const vmEvent = (state: VmState): EventType => eventNames[state]

/** The states from which the state table allows a change to `to`. */
const statesBefore = (to: VmState) => vmStates.filter((from) => vmStateTable[from].mayGoTo.includes(to))

/**
 * Changes a VM's state and its meter, and emits the event. Undos make changes that the state table does not
 * list, and set `from` to the states that they expect. Returns false if the VM is in a different state.
 */
export async function changeVmState(
  tx: Tx,
  vm: VmRow,
  to: VmState,
  {
    from = statesBefore(to),
    skipsEvent = false,
    cause,
  }: { from?: VmState[]; skipsEvent?: boolean; cause: Cause },
): Promise<boolean> {
  const isMoved = (await moveVms(tx, [vm.id], to, from)).has(vm.id)
  if (!isMoved) return false
  await meter(tx, vm, to)
  if (!skipsEvent) await emitVm(tx, vm, eventNames[to], cause)
  await updateGroupHealthOf(tx, vm)
  return true
}

/** Moves a VM to STATE_DELETING from any state. Returns its raised generation. The operation emits the event. */
export const moveToDeleting = gatheredChange(async (tx: Tx, vms: VmRow[]): Promise<number[]> => {
  const ids = vms.map(({ id }) => id)
  const generations = await moveVmsToDeleting(tx, ids, [...vmStates])
  return ids.map((id) => generations.get(id)!)
})

/** Moves a VM to STATE_RUNNING at the end of a boot, together with the commit. */
export const startVm = (tx: Tx, vm: StartedVm): Promise<void> => tx.enqueue(startVms, vm)

const startVms = (tx: Tx, vms: StartedVm[]): Promise<void> =>
  moveVmsToRunning(
    tx,
    vms,
    {
      from: statesBefore('STATE_RUNNING'),
      billed: vmStates.filter((state) => vmStateTable[state].isBilled),
    },
    eventNames.STATE_RUNNING,
  ).catch((error) => {
    throw isAssertionFailure(error) ? new UnexpectedState('a VM cannot change to running') : error
  })

/** A new member of a group may be metered before it runs. */
const isWaitingMember = ({ state, group_id }: VmRow) => state === 'STATE_CREATING' && group_id !== null

/** Meters a new member that responds and waits for the other members of its group, unless it is already metered. */
export async function meterEarly(tx: Tx, vm: VmRow): Promise<void> {
  if (isWaitingMember(vm) && vm.metered_since === null) await openVmUsage(tx, vm)
}

/**
 * Opens or closes the VM's meter. A VM that has lost its OS disk is not billed in any state, and a paused
 * meter stays closed.
 */
async function meter(tx: Tx, vm: VmRow, to: VmState): Promise<void> {
  const { isBilled } = vmStateTable[to]
  if (vm.os_disk_lost_at || vm.billing_paused_at || vmStateTable[vm.state].isBilled === isBilled) return
  if (isBilled) await openVmUsage(tx, vm)
  else await closeUsage(tx, vm.id)
}

export const openVmUsage = (tx: Tx, vm: VmRow): Promise<void> =>
  openUsage(tx, {
    projectId: vm.project_id,
    location: vm.location,
    resourceType: 'vm',
    resourceId: vm.id,
    resourceName: vm.name,
    labels: vm.labels,
    productName: vm.reservation_id ? reservedProduct(vm.type) : vm.type,
    quantity: 1,
    ...(vm.reservation_id && { reservationId: vm.reservation_id }),
  })

/** Called when the host no longer has the VM's OS disk: ends billing, and marks a VM that was running as crashed. */
export async function markOsDiskLost(tx: Tx, vm: VmRow, cause: Cause): Promise<void> {
  if (!(await recordOsDisk(tx, vm.id, true))) return
  await closeUsage(tx, vm.id)
  await closeOsDiskUsage(tx, vm)
  await emitVm(tx, vm, 'vm.os_disk_lost', cause)
  await changeVmState(tx, { ...vm, os_disk_lost_at: new Date() }, 'STATE_CRASHED', { cause })
}

/** Called when the host has the VM's OS disk again: resumes billing. */
export async function markOsDiskFound(tx: Tx, vm: VmRow, cause: Cause): Promise<void> {
  if (!(await recordOsDisk(tx, vm.id, false))) return
  if (vmStateTable[vm.state].isBilled && !vm.billing_paused_at) await openVmUsage(tx, vm)
  await openOsDiskUsage(tx, vm)
  await emitVm(tx, vm, 'vm.os_disk_found', cause)
}

export const emitVm = (tx: Tx, vm: VmRow, type: EventType, cause: Cause): Promise<void> =>
  emit(tx, {
    type,
    resourceType: 'vm',
    resourceId: vm.id,
    projectId: vm.project_id,
    actor: cause.actor,
    requestId: cause.requestId,
    clientAddress: cause.clientAddress ?? '',
    data: {
      name: vm.name,
      labels: vm.labels,
      ...(cause.operationId && { operation_id: cause.operationId }),
      ...(cause.detail && { detail: cause.detail }),
    },
  })

/** Marks the VM of an abandoned operation as unreachable, so that the reconciler finds its state by inspection. */
export async function leaveToReconciler(tx: Tx, by: Requester, operation: OperationRow): Promise<void> {
  const vm = await findAnyVm(tx, operation.resource_id)
  const cause = { ...by, operationId: operation.id, detail: 'an operator abandoned its operation' }
  const from: VmState[] = ['STATE_STARTING', 'STATE_STOPPING', 'STATE_RESETTING']
  if (vm) await changeVmState(tx, vm, 'STATE_UNREACHABLE', { from, cause })
}

/** Moves the GPUs of a VM that is off to quarantine and returns their quota; keeps its disks and addresses. */
export async function releaseGpus(tx: Tx, vm: VmRow): Promise<void> {
  const [released] = await quarantineGpus(tx, [vm.id])
  // A VM that is off uses no reservation. Its GPUs stay with the reservation.
  if (vm.reservation_id) await setReservationOfVm(tx, vm.id, null)
  await releaseQuota(tx, vm.project_id, gpuAmount(vm, released!))
}

const gpuAmount = (vm: VmRow, gpuCount: number) => ({ [gpuQuota(vmType(vm.type)!.family)]: gpuCount })

/** The amounts of all quotas that a VM holds. */
export const heldQuota = (vm: VmRow, gpuCount: number) => ({
  vms: 1,
  ...gpuAmount(vm, gpuCount),
  ...osDiskQuota(vm),
})

/**
 * Removes the VM's rows; its public address stays held for a while. The quota of a hidden VM was already
 * returned.
 */
export const forgetVm = gatheredChange(async (tx: Tx, vms: VmRow[]): Promise<undefined[]> => {
  const ids = vms.map(({ id }) => id)
  await markReferringFirewallsOutdated(tx, vms)
  const [released] = await Promise.all([
    quarantineGpus(tx, ids),
    ...vms.flatMap((vm) => [closeUsage(tx, vm.id), closeOsDiskUsage(tx, vm)]),
    deleteVmRows(tx, ids),
    holdAddresses(tx, vms),
  ])
  for (const vm of vms) await forgetNewDisks(tx, vm)
  for (const [index, vm] of vms.entries())
    if (!vm.deleted_at) await releaseQuota(tx, vm.project_id, heldQuota(vm, released[index]!))
  return vms.map(() => undefined)
})
