import { diskMbps } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import { type AttachedDisk, EngineError, type VmRef } from '../../engines/engine.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import type { Work } from '../../runner/operation.ts'
import { findAnyVm, lockAnyVm, type VmRow } from '../../store/compute/vms.ts'
import { callOf, engineAt } from '../engine-work.ts'
import { removeNewDisks } from './new-disks.ts'

export const refOf = (vm: VmRow): VmRef => ({ id: vm.id, host: vm.host ?? '' })

export const vmNotFound = () => new Failure('not_found', 'The VM no longer exists.')

/** Returns the VM of an operation. Only a deletion removes a VM, so it exists during every other operation. */
export async function vmOf(work: Work, db: Queryable = work.services.database): Promise<VmRow> {
  const vm = await findAnyVm(db, work.operation.resource_id)
  if (!vm) throw vmNotFound()
  return vm
}

export async function lockVmOf(work: Work, tx: Tx): Promise<VmRow> {
  const vm = await lockAnyVm(tx, work.operation.resource_id)
  if (!vm) throw vmNotFound()
  return vm
}

/** A step that throws this error is not retried; the operation fails with `engine_error`. */
export const osDiskLost = (cause?: unknown) =>
  new EngineError(
    'lost',
    'The OS disk of this VM was lost. The VM can be stopped and deleted, but not started unless its host reports the disk again.',
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
    mbps: diskMbps[disk.type],
  }))

/** Removes the VM at its engine, then verifies by inspection. */
export async function removeVm(work: Work, vm: VmRow): Promise<void> {
  // An operator declared the host lost. If it returns with the VM, the VM is removed as an orphan.
  if (vm.host_id === null) return
  const engine = engineAt(work.services, vm.location)
  await engine.removeVm(refOf(vm), callOf(work))
  if (await engine.inspectVm(refOf(vm), work.signal))
    throw new EngineError('unavailable', 'the engine still reports the VM after it was removed')
  await removeNewDisks(work, vm)
}

/** Powers the VM off, then verifies by inspection. */
export async function powerOffVm(work: Work): Promise<void> {
  const vm = await vmOf(work)
  if (vm.os_disk_lost_at) return
  const engine = engineAt(work.services, vm.location)
  if (!(await engine.inspectVm(refOf(vm), work.signal))) return
  await engine.powerVm(refOf(vm), 'off', callOf(work))
  const status = await engine.inspectVm(refOf(vm), work.signal)
  if (status && status.power !== 'off')
    throw new EngineError('unavailable', 'the VM is still on after it was powered off')
}
