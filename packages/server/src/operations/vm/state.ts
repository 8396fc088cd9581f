import { type EventType, gpuQuota, type VmState, vmStates, vmStateTable, vmType } from '@slipway/contract'
import type { Work } from '../../runner/operation.ts'
import { closeUsage, closeUsages, openUsages } from '../../store/billing/usage.ts'
import type { OperationRow } from '../../store/compute/operations.ts'
import { quarantineAllGpus, quarantineGpus } from '../../store/compute/placement.ts'
import { giveBackQuota, giveBackQuotas } from '../../store/compute/quotas.ts'
import {
  deleteVmRows,
  moveVms,
  moveVmsToRunning,
  noteOsDisk,
  type StartedVm,
} from '../../store/compute/vm-changes.ts'
import { findAnyVm, type VmRow } from '../../store/compute/vms.ts'
import type { Tx } from '../../store/database.ts'
import { emit, emitAll, type NewEvent, type Requester } from '../../store/events/events.ts'
import { holdAddresses } from '../../store/network/addresses.ts'
import { wantFirewallsNaming } from '../../store/network/firewalls.ts'
import { closeOsDiskUsages, openOsDiskUsages, osDiskQuota } from './os-disk.ts'

export interface Cause {
  actor: string
  requestId: string
  /** Of somebody who asked for it just now. */
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

/** The states from which the table lets a VM go to `to`. */
const statesBefore = (to: VmState) => vmStates.filter((from) => vmStateTable[from].mayGoTo.includes(to))

/**
 * The one way a VM changes its state: guarded by the state table, metered, told. `from` narrows the guard; going back
 * (undo) names states that the table does not list. False when the VM is somewhere else.
 */
export async function changeVmState(
  tx: Tx,
  vm: VmRow,
  to: VmState,
  options: { from?: VmState[]; isQuiet?: boolean; cause: Cause },
): Promise<boolean> {
  const { from, isQuiet, cause } = options
  return (await changeVmStates(tx, [{ vm, cause }], to, { from, isQuiet })).has(vm.id)
}

interface VmChange {
  vm: VmRow
  cause: Cause
}

/** The same for several at once; returns the ids of those that changed. */
export async function changeVmStates(
  tx: Tx,
  changes: VmChange[],
  to: VmState,
  options: { from?: VmState[] | undefined; isQuiet?: boolean | undefined },
): Promise<Set<string>> {
  const ids = changes.map(({ vm }) => vm.id)
  return changeVmRows(tx, changes, to, { ...options, move: (from) => moveVms(tx, ids, to, from) })
}

/** The same where `move` writes more than the state, and returns what it wrote of those that it moved. */
export async function changeVmRows<Moved extends { has(id: string): boolean }>(
  tx: Tx,
  changes: VmChange[],
  to: VmState,
  {
    from = statesBefore(to),
    isQuiet = false,
    move,
  }: {
    from?: VmState[] | undefined
    isQuiet?: boolean | undefined
    move: (from: VmState[]) => Promise<Moved>
  },
): Promise<Moved> {
  const moved = await move(from)
  const told = changes.filter(({ vm }) => moved.has(vm.id))
  const vms = told.map(({ vm }) => vm)
  await Promise.all([
    meter(tx, vms, to),
    !isQuiet && told.length > 0 ? emitVms(tx, told, eventNames[to]) : undefined,
  ])
  return moved
}

/** The same at the end of boots, for all or none, in one go with the commit. */
export const startVms = (tx: Tx, vms: StartedVm[]): Promise<void> =>
  moveVmsToRunning(
    tx,
    vms,
    {
      from: statesBefore('STATE_RUNNING'),
      billed: vmStates.filter((state) => vmStateTable[state].isBilled),
    },
    eventNames.STATE_RUNNING,
  )

/** A VM without its OS disk is billed in no state. */
async function meter(tx: Tx, vms: VmRow[], to: VmState): Promise<void> {
  const { isBilled } = vmStateTable[to]
  const changed = vms.filter((vm) => !vm.os_disk_lost_at && vmStateTable[vm.state].isBilled !== isBilled)
  if (isBilled) await openVmUsages(tx, changed)
  else
    await closeUsages(
      tx,
      changed.map(({ id }) => id),
    )
}

async function openVmUsages(tx: Tx, vms: VmRow[]): Promise<void> {
  if (vms.length === 0) return
  await openUsages(
    tx,
    vms.map((vm) => ({
      projectId: vm.project_id,
      location: vm.location,
      resourceType: 'vm',
      resourceId: vm.id,
      resourceName: vm.name,
      labels: vm.labels,
      productName: vm.type,
      quantity: 1,
    })),
  )
}

/** Its host has no OS disk of it: from now on it is not billed, and if it was alive it has crashed. */
export async function loseOsDisk(tx: Tx, vm: VmRow, cause: Cause): Promise<void> {
  if (!(await noteOsDisk(tx, vm.id, true))) return
  await closeUsage(tx, vm.id)
  await closeOsDiskUsages(tx, [vm])
  await emitVm(tx, vm, 'vm.os_disk_lost', cause)
  await changeVmState(tx, { ...vm, os_disk_lost_at: new Date() }, 'STATE_CRASHED', { cause })
}

/** Its host has it again, as if it had never been away. */
export async function findOsDisk(tx: Tx, vm: VmRow, cause: Cause): Promise<void> {
  if (!(await noteOsDisk(tx, vm.id, false))) return
  if (vmStateTable[vm.state].isBilled) await openVmUsages(tx, [vm])
  await openOsDiskUsages(tx, [vm])
  await emitVm(tx, vm, 'vm.os_disk_found', cause)
}

const vmEventOf = (vm: VmRow, type: EventType, cause: Cause): NewEvent => ({
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

/** Tells of several VMs, each with its cause, in this order. */
export const emitVms = (tx: Tx, changes: VmChange[], type: EventType): Promise<void> =>
  emitAll(
    tx,
    changes.map(({ vm, cause }) => vmEventOf(vm, type, cause)),
  )

export const emitVm = (tx: Tx, vm: VmRow, type: EventType, cause: Cause): Promise<void> =>
  emit(tx, vmEventOf(vm, type, cause))

/** An operation on it was given up on its way: what it is now, the reconciler finds out by inspection. */
export async function leaveToReconciler(tx: Tx, by: Requester, operation: OperationRow): Promise<void> {
  const vm = await findAnyVm(tx, operation.resource_id)
  const cause = { ...by, operationId: operation.id, detail: 'an operator gave its operation up' }
  const from: VmState[] = ['STATE_STARTING', 'STATE_STOPPING', 'STATE_RESETTING']
  if (vm) await changeVmState(tx, vm, 'STATE_UNREACHABLE', { from, cause })
}

/** Off: its GPUs go to quarantine and their quota back; disks and addresses stay. */
export async function releaseGpus(tx: Tx, vm: VmRow): Promise<void> {
  const released = await quarantineGpus(tx, vm.id)
  await giveBackQuota(tx, vm.project_id, gpuAmount(vm, released))
}

/** What a living VM has of the project's quotas. */
export const gpuAmount = (vm: VmRow, gpuCount: number) => ({ [gpuQuota(vmType(vm.type)!.family)]: gpuCount })

/** All that a VM has of the project's quotas. */
export const heldQuota = (vm: VmRow, gpuCount: number) => ({
  vms: 1,
  ...gpuAmount(vm, gpuCount),
  ...osDiskQuota(vm),
})

/** Gone: nothing of it is left but, for a while, its public address held back. */
export const forgetVm = (tx: Tx, vm: VmRow): Promise<void> => forgetVms(tx, [vm])

/** The same for several at once. A hidden VM gave its quota back when it was hidden. */
export async function forgetVms(tx: Tx, vms: VmRow[]): Promise<void> {
  if (vms.length === 0) return
  const ids = vms.map(({ id }) => id)
  await wantFirewallsNaming(tx, vms)
  const [released] = await Promise.all([
    quarantineAllGpus(tx, ids),
    closeUsages(tx, ids),
    closeOsDiskUsages(tx, vms),
    deleteVmRows(tx, ids),
    holdAddresses(tx, vms),
  ])
  const living = vms.filter(({ deleted_at }) => !deleted_at)
  await giveBackQuotas(
    tx,
    living.map((vm) => ({
      projectId: vm.project_id,
      amounts: heldQuota(vm, released.get(vm.id) ?? 0),
    })),
  )
}
