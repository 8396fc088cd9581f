import { vmDiskChangeStates } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import { EngineError } from '../../engines/engine.ts'
import type { Tx } from '../../postgres/database.ts'
import { next, type Outcome, type Work } from '../../runner/operation.ts'
import { detachDiskRows } from '../../store/compute/disks.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { callOf, engineAt } from '../engine-work.ts'
import { attachedDisks, refOf, requireOsDisk, vmOf } from './vm.ts'

export function requireDiskChangeState(vm: VmRow): void {
  if (!vmDiskChangeStates.includes(vm.state))
    throw new Failure(
      'conflict',
      `Attaching or detaching disks requires the VM to be in ${vmDiskChangeStates.join(' or ')}; it is in ${vm.state}.`,
    )
}

const diskIdsOf = (work: Work) => work.scratch.diskIds as string[]

export async function attachAll(work: Work): Promise<Outcome> {
  const vm = await vmOf(work)
  requireOsDisk(vm)
  const engine = engineAt(work.services, vm.location)
  const disks = attachedDisks(vm).filter(({ id }) => diskIdsOf(work).includes(id))
  for (const disk of disks) await engine.attachDisk(refOf(vm), disk, callOf(work))
  const attached = (await engine.inspectVm(refOf(vm), work.signal))?.diskIds ?? []
  if (!disks.every(({ id }) => attached.includes(id)))
    throw new EngineError(
      'unavailable',
      'the engine does not report the disks as attached after attaching them',
    )
  return next()
}

export async function detachAll(work: Work): Promise<void> {
  const vm = await vmOf(work)
  // No engine has the VM any longer, so there are no attachments to remove.
  if (vm.os_disk_lost_at) return
  const engine = engineAt(work.services, vm.location)
  for (const id of diskIdsOf(work))
    await engine.detachDisk(refOf(vm), { id, host: vm.host ?? '' }, callOf(work))
  const attached = (await engine.inspectVm(refOf(vm), work.signal))?.diskIds ?? []
  if (attached.some((id) => diskIdsOf(work).includes(id)))
    throw new EngineError(
      'unavailable',
      'the engine still reports the disks as attached after detaching them',
    )
}

export async function detachRows(work: Work, tx: Tx): Promise<void> {
  await detachDiskRows(tx, work.operation.resource_id, diskIdsOf(work))
}
