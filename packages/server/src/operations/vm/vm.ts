import { Failure } from '../../domain/failure.ts'
import { type AttachedDisk, EngineError, type VmRef } from '../../engines/engine.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import type { Work } from '../../runner/operation.ts'
import { findAnyVm, lockAnyVm, type VmRow } from '../../store/compute/vms.ts'
import { callOf, engineAt } from '../engine-work.ts'

export const refOf = (vm: VmRow): VmRef => ({ id: vm.id, host: vm.host ?? '' })

export const vmGone = () => new Failure('not_found', 'The VM is gone.')

/** The VM of a VM operation. It is there as long as the operation is: only deletion removes it. */
export async function vmOf(work: Work, db: Queryable = work.services.database): Promise<VmRow> {
  const vm = await findAnyVm(db, work.operation.resource_id)
  if (!vm) throw vmGone()
  return vm
}

/** The same, locked. */
export async function lockVmOf(work: Work, tx: Tx): Promise<VmRow> {
  const vm = await lockAnyVm(tx, work.operation.resource_id)
  if (!vm) throw vmGone()
  return vm
}

/** A step that throws it fails for good, as `engine_error`. */
export const osDiskLost = (cause?: unknown) =>
  new EngineError(
    'lost',
    'The OS disk of this VM is lost with its host: the VM can be stopped and deleted, but not started again.',
    { cause },
  )

export function requireOsDisk(vm: VmRow): void {
  if (vm.os_disk_lost_at) throw osDiskLost()
}

export const attachedDisks = (vm: VmRow): AttachedDisk[] =>
  vm.disks.map((disk) => ({
    id: disk.id,
    host: vm.host ?? '',
    type: disk.type,
    sizeGib: disk.size_gib,
    blockSize: disk.block_size,
    serialNumber: disk.serial_number,
    mode: disk.mode,
  }))

/** Gone is what inspection no longer shows. */
export async function removeVm(work: Work, vm: VmRow): Promise<void> {
  // Its host was forgotten: what may still be there is an orphan, should it ever show again.
  if (vm.host_id === null) return
  const engine = engineAt(work.services, vm.location)
  await engine.removeVm(refOf(vm), callOf(work))
  if (await engine.inspectVm(refOf(vm), work.signal))
    throw new EngineError('unavailable', 'the engine still shows the VM after its removal')
}

/** Off is what inspection shows as off. */
export async function powerOffVm(work: Work, vm: VmRow): Promise<void> {
  if (vm.os_disk_lost_at) return
  const engine = engineAt(work.services, vm.location)
  if (!(await engine.inspectVm(refOf(vm), work.signal))) return
  await engine.powerVm(refOf(vm), 'off', callOf(work))
  const status = await engine.inspectVm(refOf(vm), work.signal)
  if (status && status.power !== 'off')
    throw new EngineError('unavailable', 'the VM is still on after its power was cut')
}
