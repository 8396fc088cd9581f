import { Failure, invalidField } from '../../domain/failure.ts'
import type { CaptureSpec } from '../../engines/engine.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { type CaptureRow, lockCapture, type NewCapture } from '../../store/captures/captures.ts'
import { type DiskRow, findDisk, lockDisks } from '../../store/compute/disks.ts'
import { lockVm, type VmRow } from '../../store/compute/vms.ts'
import { findLocation } from '../../store/fleet/locations.ts'
import { blockedBy, requireNoOperation } from '../admission.ts'
import { attachedElsewhere } from '../disk/attachments.ts'
import { diskSpec } from '../disk/disk.ts'
import { refOf } from '../vm/vm.ts'
import { captureRef } from './capture.ts'

/** A locked VM, disk or snapshot that can be copied. */
export interface CaptureSource
  extends Pick<
    NewCapture,
    'sourceKind' | 'sourceId' | 'vmId' | 'size' | 'sizeGib' | 'blockSize' | 'location' | 'hostId'
  > {
  /** What the engine needs to know about the source. */
  from: CaptureSpec['from']
}

const notInProject = (what: string, id: string) =>
  new Failure('not_found', `There is no ${what} ${id} in this project.`)

const hostWhereLocal = async (tx: Tx, location: string, hostId: string | null) =>
  (await findLocation(tx, location))?.storage === 'local' ? hostId : null

/** Throws a 409 unless the VM is running or stopped and no operation on it is in progress. */
async function requireRunningOrStopped(tx: Tx, vm: VmRow): Promise<void> {
  await requireNoOperation(tx, vm.id, `The VM ${vm.name}`)
  if (vm.state !== 'STATE_RUNNING' && vm.state !== 'STATE_SHUTOFF')
    throw new Failure('conflict', `The VM ${vm.name} is in ${vm.state}; it must be running or stopped.`)
  if (vm.os_disk_lost_at) throw new Failure('conflict', `The OS disk of the VM ${vm.name} was lost.`)
}

export async function lockSourceVm(tx: Tx, projectId: string, id: string): Promise<CaptureSource> {
  const vm = await lockVm(tx, { projectId, id })
  if (!vm) throw notInProject('VM', id)
  await requireRunningOrStopped(tx, vm)
  return {
    ...{ sourceKind: 'vm', sourceId: id, vmId: id, size: vm.os_disk_size, sizeGib: vm.os_disk_gib },
    blockSize: 0,
    location: vm.location,
    hostId: await hostWhereLocal(tx, vm.location, vm.host_id),
    from: { kind: 'vm', vm: refOf(vm) },
  }
}

/** Also locks the VM that can write to the disk. VMs are locked before disks. */
export async function lockSourceDisk(tx: Tx, projectId: string, id: string): Promise<CaptureSource> {
  const seen = await findDisk(tx, projectId, id)
  if (!seen) throw notInProject('disk', id)
  if (seen.type === 'shared-volume')
    throw invalidField('disk_id', `the disk ${seen.name} is a shared volume, which cannot be copied`)
  const writerId = writerOf(seen)?.vm_id
  const vm = writerId ? await lockVm(tx, { projectId, id: writerId }) : undefined
  const [disk] = await lockDisks(tx, projectId, [id])
  if (!disk) throw notInProject('disk', id)
  const writer = writerOf(disk)
  if (writer?.vm_id !== writerId) throw new TryAgain('the disk was attached or detached')
  if (writer && !vm) throw attachedElsewhere(disk, writer)
  await requireNoOperation(tx, id, `The disk ${disk.name}`)
  if (disk.state !== 'available')
    throw new Failure('conflict', `The disk ${disk.name} is ${disk.state}; it must be available.`)
  if (vm) await requireRunningOrStopped(tx, vm)
  return {
    ...{ sourceKind: 'disk', sourceId: id, vmId: vm?.id ?? null, size: disk.size, sizeGib: disk.size_gib },
    blockSize: disk.block_size,
    location: disk.location,
    hostId: await hostWhereLocal(tx, disk.location, disk.host_id),
    from: { kind: 'disk', disk: diskSpec(disk), vm: vm ? refOf(vm) : null },
  }
}

const writerOf = ({ attached_to }: Pick<DiskRow, 'attached_to'>) =>
  attached_to.find(({ mode }) => mode === 'read-write')

export async function lockSourceSnapshot(tx: Tx, projectId: string, id: string): Promise<CaptureSource> {
  const snapshot = await lockCapture(tx, projectId, 'snapshot', id)
  if (!snapshot) throw notInProject('snapshot', id)
  await requireAvailable(tx, 'snapshot', snapshot)
  return {
    ...{ sourceKind: 'snapshot', sourceId: id, vmId: null, size: snapshot.size },
    sizeGib: snapshot.size_gib,
    blockSize: snapshot.block_size,
    location: snapshot.location,
    hostId: snapshot.host_id,
    from: { kind: 'snapshot', snapshot: captureSource(snapshot) },
  }
}

/** Throws a 409 for an image or snapshot that is being created or deleted. */
export async function requireAvailable(tx: Tx, noun: string, { id, name, state }: CaptureRow): Promise<void> {
  if (state !== 'available')
    throw await blockedBy(tx, id, `The ${noun} ${name} is ${state}; it must be available.`)
}

/** What an engine needs to know in order to use the image or snapshot. */
export const captureSource = (capture: CaptureRow) => ({
  ...captureRef(capture),
  source: capture.engine_source!,
})
