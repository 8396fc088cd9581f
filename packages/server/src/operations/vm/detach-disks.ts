import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { raiseVmGeneration } from '../../store/compute/vm-changes.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { beginOperation, type ProjectRequester, requireNoOperation } from '../admission.ts'
import { requireUncaptured } from '../capture/capture.ts'
import { attachAll, detachAll, detachRows, requireDiskChangeState } from './disks.ts'
import { vmOf } from './vm.ts'

export async function admitVmDetachDisks(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  request: { detach_disks: string[] },
): Promise<BegunOperation> {
  await requireNoOperation(tx, vm.id, `The VM ${vm.name}`)
  requireDiskChangeState(vm)
  for (const id of request.detach_disks)
    if (!vm.disks.some((disk) => disk.id === id))
      throw new Failure('conflict', `The disk ${id} is not attached to this VM.`)
  await requireUncaptured(tx, request.detach_disks, 'A disk of the request')
  return beginOperation(tx, by, vmDetachDisks, {
    resource: vm,
    generation: await raiseVmGeneration(tx, vm.id),
    request,
    scratch: { diskIds: [...new Set(request.detach_disks)] },
    eventType: 'vm.detaching_disks',
    eventData: { disk_ids: request.detach_disks },
  })
}

export const vmDetachDisks: Definition = {
  kind: 'vm-detach-disks',
  name: 'DETACH',
  resourceType: 'vm',
  deadlineS: 300,
  steps: [
    { name: 'admit' },
    { name: 'detach', call: detach, undoCall: attachAgain },
    { name: 'finish', tx: finish },
  ],
}

async function detach(work: Work): Promise<Outcome> {
  await detachAll(work)
  return next()
}

async function attachAgain(work: Work): Promise<void> {
  const { os_disk_lost_at } = await vmOf(work)
  if (!os_disk_lost_at) await attachAll(work)
}

/** Other VMs can get the disks only now that the engine has detached them. */
async function finish(work: Work, tx: Tx): Promise<Outcome> {
  await detachRows(work, tx)
  return done(await vmViewOf(tx, work.operation.resource_id))
}
