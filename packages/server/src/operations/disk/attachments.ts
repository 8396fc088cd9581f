import { maxDisksPerVm, type VmType } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { retryAlone } from '../../postgres/transaction.ts'
import { attachDiskRow, type DiskRow, lockDisks, pinDisk } from '../../store/compute/disks.ts'
import { requireNoOperation } from '../admission.ts'
import { requireUncaptured } from '../capture/capture.ts'

export interface WantedDisk {
  disk_id: string
  mode?: 'read-write' | 'read-only'
}

export interface LockedDisk {
  disk: DiskRow
  mode: 'read-write' | 'read-only'
}

export function requireDistinct(field: string, wanted: WantedDisk[]): void {
  const seen = new Set<string>()
  for (const [index, { disk_id }] of wanted.entries()) {
    if (seen.has(disk_id))
      throw invalidField(`${field}/${index}/disk_id`, 'names a disk that is already in the list')
    seen.add(disk_id)
  }
}

/** Locks the disks listed in the request's `field`, and checks that a VM of this location and type can have them. */
export async function lockDisksFor(
  tx: Tx,
  projectId: string,
  field: string,
  wanted: WantedDisk[] = [],
  vm: { location: string; type: VmType; disks?: { type: string }[] },
): Promise<LockedDisk[]> {
  if (wanted.length === 0) return []
  // In a batch, the disks of different requests would be locked in no fixed order.
  if (!tx.mayWait) throw retryAlone('disks are locked by one request at a time')
  const ids = wanted.map(({ disk_id }) => disk_id)
  const rows = new Map((await lockDisks(tx, projectId, ids)).map((disk) => [disk.id, disk]))
  const locked = wanted.map(({ disk_id, mode = 'read-write' }) => {
    const disk = rows.get(disk_id)
    if (!disk) throw new Failure('not_found', `There is no disk ${disk_id} in this project.`)
    return { disk, mode }
  })
  for (const [index, { disk }] of locked.entries()) checkKind(`${field}/${index}/disk_id`, disk, vm)
  const all = [...(vm.disks ?? []), ...locked.map(({ disk }) => disk)]
  const count = (type: string) => all.filter((disk) => disk.type === type).length
  if (count('persistent-ssd') > maxDisksPerVm['persistent-ssd'])
    throw invalidField(field, `a VM can have at most ${maxDisksPerVm['persistent-ssd']} disks`)
  if (count('shared-volume') > maxDisksPerVm['shared-volume'])
    throw invalidField(field, `a VM can have at most ${maxDisksPerVm['shared-volume']} shared volumes`)
  return locked
}

function checkKind(field: string, disk: DiskRow, vm: { location: string; type: VmType }): void {
  if (disk.location !== vm.location)
    throw invalidField(field, `the disk ${disk.name} is in ${disk.location}, the VM in ${vm.location}`)
  if (disk.type === 'shared-volume' && !vm.type.isWholeHost)
    throw invalidField(
      field,
      `${disk.name} is a shared volume; only VMs of a whole-host type can use shared volumes`,
    )
}

/** Throws a 409 if a disk is in use or, with a `hostId`, on another host. */
export async function requireFree(tx: Tx, disks: LockedDisk[], hostId: string | null = null): Promise<void> {
  for (const { disk, mode } of disks) {
    await requireNoOperation(tx, disk.id, `The disk ${disk.name}`)
    if (disk.state !== 'available')
      throw new Failure('conflict', `The disk ${disk.name} is ${disk.state}; it must be available.`)
    const [holder] = disk.attached_to
    const isExclusive = disk.type === 'persistent-ssd'
    if (isExclusive && holder && (mode === 'read-write' || holder.mode === 'read-write'))
      throw attachedElsewhere(disk, holder)
    if (hostId && disk.host_id && disk.host_id !== hostId)
      throw new Failure('conflict', `The disk ${disk.name} is not on the same host as the VM.`)
    await requireUncaptured(tx, [disk.id], `The disk ${disk.name}`)
  }
}

/** Returns the 409 that names the VM that has the disk. */
export function attachedElsewhere(
  disk: DiskRow,
  { vm_id, mode, is_vm_deleted }: DiskRow['attached_to'][number],
): Failure {
  return new Failure(
    'conflict',
    is_vm_deleted
      ? `The disk ${disk.name} was attached to VM ${vm_id}, which was deleted while its host was down. The disk becomes available when the host is up again, or when an operator declares the host lost.`
      : `The disk ${disk.name} is attached to VM ${vm_id} as ${mode}. Detach it first.`,
  )
}

export const hostsOf = (disks: LockedDisk[]): string[] => [
  ...new Set(disks.flatMap(({ disk }) => disk.host_id ?? [])),
]

/** Records that the disks belong to this VM, whether or not the engine has attached them yet. */
export async function admitAttachments(
  tx: Tx,
  vmId: string,
  disks: LockedDisk[],
  pinnedToHost: string | null,
): Promise<void> {
  for (const { disk, mode } of disks) {
    await attachDiskRow(tx, vmId, disk.id, mode, disk.type === 'persistent-ssd' && mode === 'read-write')
    if (pinnedToHost) await pinDisk(tx, disk.id, pinnedToHost)
  }
}
