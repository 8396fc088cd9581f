import { isResourceName, maxDisksPerVm, type VmType } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { diskSizeProblem, parseDiskSize } from '../../domain/sizes.ts'
import { EngineError } from '../../engines/engine.ts'
import type { Tx } from '../../postgres/database.ts'
import { retryAlone } from '../../postgres/transaction.ts'
import type { Work } from '../../runner/operation.ts'
import {
  attachDiskRow,
  type DiskRow,
  deleteDiskRow,
  findDisk,
  insertDisk,
  type NewDisk,
  pinDisk,
  setDiskState,
} from '../../store/compute/disks.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { type QuotaAmounts, releaseQuota } from '../../store/compute/quotas.ts'
import { serialNumberOf, type VmRow } from '../../store/compute/vms.ts'
import { emit } from '../../store/events/events.ts'
import type { ProjectRequester } from '../admission.ts'
import { diskQuota, diskSpec, meterDisk, requireSize, writeUniqueDiskName } from '../disk/disk.ts'
import { engineAt } from '../engine-work.ts'
import type { VmBody } from './template.ts'

/**
 * Returns the disks of `new_disks`, with the VM's labels. Throws a 400 if one is not allowed. Names in `kept`
 * are skipped: they belong to disks of an earlier group member with the same name.
 */
export function newDisksOf(
  projectId: string,
  body: VmBody,
  type: VmType,
  location: string,
  kept: ReadonlySet<string> = new Set(),
): NewDisk[] {
  const { name, new_disks: wanted = [], labels = {} } = body
  const shared = wanted.filter((disk) => disk.type === 'shared-volume')
  if (shared.length > maxDisksPerVm['shared-volume'])
    throw invalidField('new_disks', `a VM can have at most ${maxDisksPerVm['shared-volume']} shared volumes`)
  let number = 0
  return wanted.map(({ size, type: diskType = 'persistent-ssd', block_size }, index) => {
    const problem = diskSizeProblem(diskType, size)
    if (problem) throw invalidField(`new_disks/${index}/size`, problem)
    if (diskType === 'shared-volume' && !type.isWholeHost)
      throw invalidField(`new_disks/${index}/type`, 'only VMs of a whole-host type can use shared volumes')
    const id = uuid()
    do number++
    while (kept.has(`${name}-disk-${number}`))
    const diskName = `${name}-disk-${number}`
    if (!isResourceName(diskName))
      throw invalidField('name', `is too long: disk names such as ${diskName} would exceed the limit`)
    return {
      id,
      projectId,
      name: diskName,
      type: diskType,
      size,
      sizeGib: parseDiskSize(size)!.gib,
      location,
      blockSize: block_size ?? (diskType === 'shared-volume' ? 0 : 512),
      serialNumber: serialNumberOf(id),
      labels,
      description: '',
      isProtected: false,
      groupId: null,
      snapshotId: null,
    }
  })
}

export function newDisksQuota(disks: Pick<NewDisk, 'type' | 'sizeGib'>[]): QuotaAmounts {
  const sum: QuotaAmounts = {}
  for (const { type, sizeGib } of disks)
    for (const [name, amount] of Object.entries(diskQuota(type, sizeGib)) as ['disk_gib', number][])
      sum[name] = (sum[name] ?? 0) + amount
  return sum
}

/**
 * Makes a request with new disks leave its batch before it writes, because a taken disk name would make the whole
 * batch fail.
 */
export function leaveBatchForNewDisks(tx: Tx, disks: NewDisk[]): void {
  if (disks.length > 0 && !tx.mayWait) throw retryAlone('new disks are admitted by one request at a time')
}

/**
 * Writes the disks of a new VM and attaches them. They become usable when the VM runs, and are removed if it
 * never runs.
 */
export async function admitNewDisks(
  tx: Tx,
  vmId: string,
  disks: NewDisk[],
  pinnedToHost: string | null,
): Promise<void> {
  for (const disk of disks) {
    await writeUniqueDiskName(disk.name, () => insertDisk(tx, disk))
    await attachDiskRow(tx, vmId, disk.id, 'read-write', disk.type === 'persistent-ssd')
    if (pinnedToHost) await pinDisk(tx, disk.id, pinnedToHost)
  }
}

export async function announceNewDisks(
  tx: Tx,
  by: ProjectRequester,
  disks: NewDisk[],
  operation: BegunOperation,
): Promise<void> {
  for (const { id, name, labels, size, location } of disks)
    await emit(tx, {
      ...by,
      type: 'disk.creating',
      resourceType: 'disk',
      resourceId: id,
      data: { name, labels, size, location, operation_id: operation.id, operation_name: operation.name },
    })
}

/** The disks that are created with the VM and are not usable yet. */
const unfinishedDisks = (vm: VmRow) => vm.disks.filter(({ state }) => state === 'creating')

async function diskRowsOf(db: Tx, vm: VmRow): Promise<DiskRow[]> {
  const rows = await Promise.all(unfinishedDisks(vm).map(({ id }) => findDisk(db, vm.project_id, id)))
  return rows.filter((row) => row !== undefined)
}

const rowsForEngine = (work: Work, vm: VmRow) => diskRowsOf(work.services.database.withoutTransaction, vm)

/** Creates the new disks of the VM at its engine. */
export async function createNewDisks(work: Work, vm: VmRow): Promise<void> {
  if (unfinishedDisks(vm).length === 0) return
  const engine = engineAt(work.services, vm.location)
  for (const disk of await rowsForEngine(work, vm)) {
    await engine.ensureDisk(diskSpec(disk), { generation: disk.generation, signal: work.signal })
    await requireSize(engine, diskSpec(disk), work)
  }
}

/**
 * Removes the new disks of a VM that never ran. The higher generation makes the engine refuse late calls of
 * the creation.
 */
export async function removeNewDisks(work: Work, vm: VmRow): Promise<void> {
  if (unfinishedDisks(vm).length === 0) return
  const engine = engineAt(work.services, vm.location)
  for (const disk of await rowsForEngine(work, vm)) {
    await engine.removeDisk(diskSpec(disk), { generation: disk.generation + 1, signal: work.signal })
    if (await engine.inspectDisk(diskSpec(disk), work.signal))
      throw new EngineError('unavailable', 'the engine still reports the disk after its removal')
  }
}

/** Called when the VM runs: makes its new disks usable and meters them. */
export async function finishNewDisks(
  tx: Tx,
  vm: VmRow,
  operation: Pick<OperationRow, 'id' | 'actor' | 'request_id'>,
): Promise<void> {
  for (const disk of await diskRowsOf(tx, vm)) {
    if (!(await setDiskState(tx, disk.id, 'available', ['creating'])))
      throw new Failure('conflict', `The disk ${disk.name} changed to ${disk.state} in the meantime.`)
    await meterDisk(tx, disk, disk.size_gib)
    await emit(tx, {
      type: 'disk.available',
      resourceType: 'disk',
      resourceId: disk.id,
      projectId: disk.project_id,
      actor: operation.actor,
      requestId: operation.request_id,
      data: { name: disk.name, labels: disk.labels, operation_id: operation.id },
    })
  }
}

/** Deletes the rows of new disks of a VM that never ran. Called after the VM's row is deleted. */
export async function forgetNewDisks(tx: Tx, vm: VmRow): Promise<void> {
  const disks = unfinishedDisks(vm)
  for (const { id } of disks) await deleteDiskRow(tx, id)
  const amounts = newDisksQuota(disks.map(({ type, size_gib }) => ({ type, sizeGib: size_gib })))
  if (disks.length > 0) await releaseQuota(tx, vm.project_id, amounts)
}
