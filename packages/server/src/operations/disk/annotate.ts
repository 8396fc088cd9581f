import type { AnnotationUpdate } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { relabelUsage } from '../../store/billing/usage.ts'
import { annotateDisk, type DiskRow, findDisk, findDiskView } from '../../store/compute/disks.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import type { ProjectRequester } from '../admission.ts'
import { recordAnnotation } from '../annotations.ts'
import { writeUniqueDiskName } from './disk.ts'

/** The caller has locked the disk's row. */
export async function annotate(
  tx: Tx,
  by: ProjectRequester,
  disk: DiskRow,
  change: AnnotationUpdate,
): Promise<BegunOperation> {
  if (disk.state === 'deleting')
    throw new Failure('conflict', `The disk ${disk.name} is being deleted and cannot be changed.`)
  await writeUniqueDiskName(change.name ?? disk.name, () => annotateDisk(tx, disk.id, change))
  const changed = (await findDisk(tx, by.projectId, disk.id))!
  await relabelUsage(tx, [disk.id], changed.name, changed.labels)
  const record = (await findDiskView(tx, by.projectId, disk.id))!
  return recordAnnotation(tx, by, 'disk', changed, change, record)
}
