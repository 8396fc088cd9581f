import type { DiskType } from '@slipway/contract'
import { Failure, nameTaken } from '../../domain/failure.ts'
import { sizeGb, sizeTib } from '../../domain/sizes.ts'
import { type DiskSpec, type Engine, EngineError } from '../../engines/engine.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import type { Work } from '../../runner/operation.ts'
import { closeUsage, openUsage } from '../../store/billing/usage.ts'
import { type DiskRow, deleteDiskRow, findDisk } from '../../store/compute/disks.ts'
import { releaseQuota } from '../../store/compute/quotas.ts'
import { writeOrRefuse } from '../conflicts.ts'
import { callOf, engineAt } from '../engine-work.ts'

export const diskQuota = (type: DiskType, sizeGib: number) =>
  type === 'shared-volume' ? { shared_volume_tib: sizeTib(sizeGib) } : { disk_gib: sizeGib }

/** Runs a write. Throws a 409 if another disk of the project has this name. */
export const writeUniqueDiskName = <T>(name: string, write: () => Promise<T>): Promise<T> =>
  writeOrRefuse({ disks_project_id_name_key: nameTaken('disk', name) }, write)

/** Returns the disk of an operation. Only a deletion removes a disk, so it exists during every other operation. */
export async function diskOf(work: Work, db: Queryable = work.services.database): Promise<DiskRow> {
  const disk = await findDisk(db, work.operation.project_id, work.operation.resource_id)
  if (!disk) throw new Failure('not_found', 'The disk no longer exists.')
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

/** Deletes the disk's row, closes its meter and returns its quota. */
export async function forgetDisk(work: Work, tx: Tx): Promise<void> {
  const disk = await diskOf(work, tx)
  await closeUsage(tx, disk.id)
  await deleteDiskRow(tx, disk.id)
  await releaseQuota(tx, disk.project_id, diskQuota(disk.type, disk.size_gib))
}

/** Removes the disk at its engine, then verifies by inspection. */
export async function removeDisk(work: Work): Promise<void> {
  const disk = await diskOf(work)
  const engine = engineAt(work.services, disk.location)
  await engine.removeDisk(diskSpec(disk), callOf(work))
  if (await engine.inspectDisk(diskSpec(disk), work.signal))
    throw new EngineError('unavailable', 'the engine still reports the disk after it was removed')
}

/** Verifies by inspection that the engine has created or grown the disk. */
export async function requireSize(engine: Engine, disk: DiskSpec, work: Work): Promise<void> {
  const sizeGib = (await engine.inspectDisk(disk, work.signal))?.sizeGib ?? 0
  if (sizeGib < disk.sizeGib)
    throw new EngineError(
      'unavailable',
      `the engine reports a disk of ${sizeGib} GiB, expected ${disk.sizeGib} GiB`,
    )
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
