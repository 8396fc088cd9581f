import { Failure } from '../domain/failure.ts'
import { kinds } from '../operations/capture/capture.ts'
import { admitCaptureDelete } from '../operations/capture/delete.ts'
import { admitDiskDelete } from '../operations/disk/delete.ts'
import { forgetVm, markOsDiskLost, releaseGpus } from '../operations/vm/state.ts'
import type { Tx } from '../postgres/database.ts'
import { findCapture, lockCapturesOfHost, unpinLostCapture } from '../store/captures/captures.ts'
import { findDisk } from '../store/compute/disks.ts'
import { setVmHost } from '../store/compute/vm-changes.ts'
import { findAnyVm } from '../store/compute/vms.ts'
import { emit, type Requester } from '../store/events/events.ts'
import type { HostRow } from '../store/fleet/fleet.ts'
import {
  lockDisksOfHost,
  lockVmsOfHost,
  markHostForgotten,
  removeHostGpus,
  unpinLostDisk,
} from '../store/fleet/forgotten-hosts.ts'
import { readHost } from './hosts.ts'

const detail = 'its host is lost permanently'

/**
 * Gives up a host that will not return, at the request of an operator. Its VMs lose their OS disk, except for
 * stopped VMs on shared storage, which can start on another host. VMs that were deleted while the host was
 * down are removed, and so are the disks, custom images and snapshots on it. Unfinished operations notice the
 * loss at their next step. This function can be repeated safely.
 */
export async function forgetHost(tx: Tx, by: Requester, id: string): Promise<HostRow> {
  const { name, location, state } = await readHost(tx, id)
  const vms = await lockVmsOfHost(tx, id)
  if (!(await markHostForgotten(tx, id)))
    throw new Failure(
      'conflict',
      `The host ${name} is ${state}; only a host that is down can be forgotten. Drain it instead, and remove it when it is empty.`,
    )
  for (const vm of vms) await releaseLostVm(tx, by, vm.id, vm.lives_on_host)
  await removeHostGpus(tx, id)
  const disks = await lockDisksOfHost(tx, id)
  for (const disk of disks) await deleteLostDisk(tx, by, disk)
  const captures = await lockCapturesOfHost(tx, id)
  for (const capture of captures) await deleteLostCapture(tx, by, capture)
  const data = {
    name,
    location,
    vm_ids: vms.map((vm) => vm.id),
    disk_ids: disks.map((disk) => disk.id),
    capture_ids: captures.map((capture) => capture.id),
  }
  await emit(tx, { ...by, type: 'host.forgotten', resourceType: 'host', resourceId: id, data })
  return readHost(tx, id)
}

async function releaseLostVm(tx: Tx, by: Requester, id: string, livesOnHost: boolean): Promise<void> {
  const vm = (await findAnyVm(tx, id))!
  if (vm.deleted_at) return forgetVm(tx, vm)
  if (livesOnHost) {
    await releaseGpus(tx, vm)
    await markOsDiskLost(tx, vm, { ...by, detail })
  }
  await setVmHost(tx, id, null)
}

/** Deletes the disk with a normal deletion, which also cancels the disk's unfinished operations. */
async function deleteLostDisk(tx: Tx, by: Requester, { id, project_id }: { id: string; project_id: string }) {
  await unpinLostDisk(tx, id)
  const disk = (await findDisk(tx, project_id, id))!
  const owner = { ...by, projectId: project_id }
  const data = { name: disk.name, detail }
  await emit(tx, { ...owner, type: 'disk.lost', resourceType: 'disk', resourceId: id, data })
  await admitDiskDelete(tx, owner, disk)
}

/** Deletes the image or snapshot with a normal deletion, as disks are deleted. */
async function deleteLostCapture(
  tx: Tx,
  by: Requester,
  { id, project_id }: { id: string; project_id: string },
) {
  await unpinLostCapture(tx, id)
  const capture = (await findCapture(tx, project_id, id))!
  const owner = { ...by, projectId: project_id }
  const { resourceType } = kinds[capture.kind]
  const data = { name: capture.name, detail }
  await emit(tx, { ...owner, type: `${resourceType}.lost`, resourceType, resourceId: id, data })
  await admitCaptureDelete(tx, owner, capture)
}
