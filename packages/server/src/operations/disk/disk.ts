import type { DiskType, EventType } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import { sizeGb, sizeTib } from '../../domain/sizes.ts'
import { type DiskSpec, type Engine, EngineError } from '../../engines/engine.ts'
import { type Queryable, type Tx, violatedConstraint } from '../../postgres/database.ts'
import type { Work } from '../../runner/operation.ts'
import { closeUsage, openUsage } from '../../store/billing/usage.ts'
import { type DiskRow, deleteDiskRow, findDisk } from '../../store/compute/disks.ts'
import { giveBackQuota } from '../../store/compute/quotas.ts'
import { emit } from '../../store/events/events.ts'
import { callOf, engineAt } from '../engine-work.ts'

/** Which quota a disk takes, and how much of it. */
export const diskQuota = (type: DiskType, sizeGib: number) =>
  type === 'shared-volume' ? { shared_volume_tib: sizeTib(sizeGib) } : { disk_gib: sizeGib }

export async function diskNameOrConflict<T>(name: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (violatedConstraint(error) === 'disks_project_id_name_key')
      throw new Failure('already_exists', `There is already a disk called ${name}: choose another name.`)
    throw error
  }
}

/** The disk of a disk operation: only deletion removes it. */
export async function diskOf(work: Work, db: Queryable = work.services.database): Promise<DiskRow> {
  const disk = await findDisk(db, work.operation.project_id, work.operation.resource_id)
  if (!disk) throw new Failure('not_found', 'The disk is gone.')
  return disk
}

export const diskSpec = (disk: DiskRow): DiskSpec => ({
  id: disk.id,
  host: disk.host ?? '',
  type: disk.type,
  sizeGib: disk.size_gib,
  blockSize: disk.block_size,
  serialNumber: disk.serial_number,
})

/** Gone from our books: quota back, meter closed. */
export async function forgetDisk(work: Work, tx: Tx): Promise<void> {
  const disk = await diskOf(work, tx)
  await closeUsage(tx, disk.id)
  await deleteDiskRow(tx, disk.id)
  await giveBackQuota(tx, disk.project_id, diskQuota(disk.type, disk.size_gib))
}

/** Gone is what inspection no longer shows. */
export async function removeDisk(work: Work): Promise<void> {
  const disk = await diskOf(work)
  const engine = engineAt(work.services, disk.location)
  await engine.removeDisk(diskSpec(disk), callOf(work))
  if (await engine.inspectDisk(diskSpec(disk), work.signal))
    throw new EngineError('unavailable', 'the engine still shows the disk after its removal')
}

/** Made or grown is what inspection shows so. */
export async function requireSize(engine: Engine, disk: DiskSpec, work: Work): Promise<void> {
  const sizeGib = (await engine.inspectDisk(disk, work.signal))?.sizeGib ?? 0
  if (sizeGib < disk.sizeGib)
    throw new EngineError('unavailable', `the engine shows the disk with ${sizeGib} of ${disk.sizeGib} GiB`)
}

export async function meterDisk(tx: Tx, disk: DiskRow, sizeGib: number): Promise<void> {
  await closeUsage(tx, disk.id)
  await openUsage(tx, {
    projectId: disk.project_id,
    location: disk.location,
    resourceType: 'disk',
    resourceId: disk.id,
    resourceName: disk.name,
    labels: disk.labels,
    productName: disk.type,
    quantity: sizeGb(sizeGib),
  })
}

export const emitDisk = (tx: Tx, work: Work, disk: DiskRow, type: EventType): Promise<void> =>
  emit(tx, {
    type,
    resourceType: 'disk',
    resourceId: disk.id,
    projectId: disk.project_id,
    actor: work.operation.actor,
    requestId: work.operation.request_id,
    data: { name: disk.name, labels: disk.labels, operation_id: work.operation.id },
  })
