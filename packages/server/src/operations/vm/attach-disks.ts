import { vmType } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, type Work } from '../../runner/operation.ts'
import { detachDiskRows } from '../../store/compute/disks.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { raiseVmGeneration } from '../../store/compute/vm-changes.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { findLocation } from '../../store/fleet/locations.ts'
import { beginOperation, type ProjectRequester, requireIdle } from '../admission.ts'
import { admitAttachments, lockDisksFor, type WantedDisk } from '../disk/attachments.ts'
import { attachAll, detachAll, diskIdsOf, requireDiskChangeState } from './disks.ts'

/** The disks are the VM's from this transaction on: two VMs never get one disk. */
export async function admitVmAttachDisks(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  request: { attach_disks: WantedDisk[] },
): Promise<BegunOperation> {
  await requireIdle(tx, vm.id, `The VM ${vm.name}`)
  requireDiskChangeState(vm)
  // Local disks go where the VM is.
  const hostId = (await findLocation(tx, vm.location))?.storage === 'local' ? vm.host_id : null
  const disks = await lockDisksFor(tx, by.projectId, 'attach_disks', request.attach_disks, {
    location: vm.location,
    type: vmType(vm.type)!,
    disks: vm.disks,
    hostId,
  })
  for (const { disk } of disks) {
    if (vm.disks.some(({ id }) => id === disk.id))
      throw new Failure('conflict', `The disk ${disk.name} is attached to this VM already.`)
    await requireIdle(tx, disk.id, `The disk ${disk.name}`)
  }
  await admitAttachments(tx, vm.id, disks, hostId)
  return beginOperation(tx, by, vmAttachDisks, {
    resourceId: vm.id,
    location: vm.location,
    generation: await raiseVmGeneration(tx, vm.id),
    request,
    scratch: { diskIds: disks.map(({ disk }) => disk.id) },
    eventType: 'vm.attaching_disks',
    eventData: { name: vm.name, labels: vm.labels, disk_ids: disks.map(({ disk }) => disk.id) },
  })
}

export const vmAttachDisks: Definition = {
  kind: 'vm-attach-disks',
  name: 'ATTACH',
  resourceType: 'vm',
  deadlineS: 300,
  steps: [
    { name: 'admit', undoTx: giveBack },
    { name: 'attach', call: attachAll, undoCall: detachAll },
    { name: 'finish', tx: async (work, tx) => done(await vmViewOf(tx, work.operation.resource_id)) },
  ],
}

async function giveBack(work: Work, tx: Tx): Promise<void> {
  await detachDiskRows(tx, work.operation.resource_id, diskIdsOf(work))
}
