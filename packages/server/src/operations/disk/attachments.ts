import type { VmType } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { attachDiskRow, type DiskRow, lockDisks, pinDisk } from '../../store/compute/disks.ts'

const mostPersistent = 16
const mostShared = 4

export interface WantedDisk {
  disk_id: string
  mode?: 'read-write' | 'read-only'
}

export interface LockedDisk {
  disk: DiskRow
  mode: 'read-write' | 'read-only'
}

/** This needs no look at anything else, and comes first. */
export function requireDistinct(field: string, wanted: WantedDisk[]): void {
  const seen = new Set<string>()
  for (const [index, { disk_id }] of wanted.entries()) {
    if (seen.has(disk_id)) throw invalidField(`${field}/${index}/disk_id`, 'names a disk twice')
    seen.add(disk_id)
  }
}

/**
 * Locks the disks and checks that this VM may have them: same location, right kind, right number, nobody in the way.
 * They stand at `field` of the request's body.
 */
export async function lockDisksFor(
  tx: Tx,
  projectId: string,
  field: string,
  wanted: WantedDisk[],
  vm: { location: string; type: VmType; disks?: { type: string }[]; hostId?: string | null },
): Promise<LockedDisk[]> {
  if (wanted.length === 0) return []
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
  if (count('persistent-ssd') > mostPersistent)
    throw invalidField(field, `a VM takes at most ${mostPersistent} disks`)
  if (count('shared-volume') > mostShared)
    throw invalidField(field, `a VM takes at most ${mostShared} shared volumes`)
  for (const { disk, mode } of locked) checkFree(disk, mode, vm)
  return locked
}

function checkKind(field: string, disk: DiskRow, vm: { location: string; type: VmType }): void {
  if (disk.location !== vm.location)
    throw invalidField(field, `${disk.name} is in ${disk.location}, the VM in ${vm.location}`)
  if (disk.type === 'shared-volume' && !vm.type.isWholeHost)
    throw invalidField(field, `${disk.name} is a shared volume, which only whole-host types can have`)
}

function checkFree(disk: DiskRow, mode: 'read-write' | 'read-only', vm: { hostId?: string | null }): void {
  if (disk.state !== 'available')
    throw new Failure('conflict', `The disk ${disk.name} is ${disk.state}; it must be available.`)
  const [holder] = disk.attached_to
  const isExclusive = disk.type === 'persistent-ssd'
  if (isExclusive && holder && (mode === 'read-write' || holder.mode === 'read-write'))
    throw heldBy(disk, holder)
  if (vm.hostId && disk.host_id && disk.host_id !== vm.hostId)
    throw new Failure('conflict', `The disk ${disk.name} lives on another host than the VM.`)
}

/** 409 that names the VM which has the disk, and what to do. */
export function heldBy(
  disk: DiskRow,
  { vm_id, mode, is_vm_deleted }: DiskRow['attached_to'][number],
): Failure {
  return new Failure(
    'conflict',
    is_vm_deleted
      ? `The disk ${disk.name} was attached to VM ${vm_id}, which was deleted while its host was away: it is free when the host is back, or when an operator forgets the host.`
      : `The disk ${disk.name} is attached to VM ${vm_id} as ${mode}: detach it there first.`,
  )
}

/** Where a VM with these disks can be at all; null when they do not say. */
export function hostsOfLocalDisks(disks: LockedDisk[]): string[] | null {
  const hosts = [...new Set(disks.flatMap(({ disk }) => (disk.host_id ? [disk.host_id] : [])))]
  if (hosts.length > 1)
    throw new Failure('conflict', 'The disks live on different hosts: no VM can have them all.')
  return hosts.length === 0 ? null : hosts
}

/** From now on the disks are this VM's, whether or not the engine has attached them yet. */
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
