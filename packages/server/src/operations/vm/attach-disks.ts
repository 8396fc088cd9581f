import { vmType } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { raiseVmGeneration } from '../../store/compute/vm-changes.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { findLocation } from '../../store/fleet/locations.ts'
import { beginOperation, type ProjectRequester, requireNoOperation } from '../admission.ts'
import { admitAttachments, lockDisksFor, requireFree, type WantedDisk } from '../disk/attachments.ts'
import { attachAll, detachAll, detachRows, requireDiskChangeState } from './disks.ts'

/** Assigns the disks to the VM in this transaction, so that no other VM can get a disk that only one VM may have. */
export async function admitVmAttachDisks(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  request: { attach_disks: WantedDisk[] },
): Promise<BegunOperation> {
  await requireNoOperation(tx, vm.id, `The VM ${vm.name}`)
  requireDiskChangeState(vm)
  // Local disks must be on the VM's host.
  const hostId = (await findLocation(tx, vm.location))?.storage === 'local' ? vm.host_id : null
  const type = vmType(vm.type)!
  const disks = await lockDisksFor(tx, by.projectId, 'attach_disks', request.attach_disks, { ...vm, type })
  for (const { disk } of disks)
    if (vm.disks.some(({ id }) => id === disk.id))
      throw new Failure('conflict', `The disk ${disk.name} is already attached to this VM.`)
  await requireFree(tx, disks, hostId)
  await admitAttachments(tx, vm.id, disks, hostId)
  const diskIds = disks.map(({ disk }) => disk.id)
  return beginOperation(tx, by, vmAttachDisks, {
    resource: vm,
    generation: await raiseVmGeneration(tx, vm.id),
    request,
    scratch: { diskIds },
    eventType: 'vm.attaching_disks',
    eventData: { disk_ids: diskIds },
  })
}

export const vmAttachDisks: Definition = {
  kind: 'vm-attach-disks',
  name: 'ATTACH',
  resourceType: 'vm',
  deadlineS: 300,
  steps: [
    { name: 'admit', undoTx: detachRows },
    { name: 'attach', call: attachAll, undoCall: detachAll },
    { name: 'finish', tx: async (work, tx) => done(await vmViewOf(tx, work.operation.resource_id)) },
  ],
}
