import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import { type DiskRow, raiseDiskGeneration, setDiskState } from '../../store/compute/disks.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { lockUnfinishedOperations } from '../../store/compute/operations.ts'
import { releaseQuota } from '../../store/compute/quotas.ts'
import {
  beginOperation,
  cancelForDeletion,
  type ProjectRequester,
  waitForCancelledOperations,
} from '../admission.ts'
import { emitResource } from '../engine-work.ts'
import { attachedElsewhere } from './attachments.ts'
import { diskOf, diskQuota, forgetDisk, removeDisk } from './disk.ts'

/** The caller has locked the disk. */
export async function admitDiskDelete(tx: Tx, by: ProjectRequester, disk: DiskRow): Promise<BegunOperation> {
  const [holder] = disk.attached_to
  if (holder) throw attachedElsewhere(disk, holder)
  const grownByGib = await unfinishedGrowth(tx, disk)
  const deletion = await cancelForDeletion(tx, diskDelete, by, disk.id)
  if (deletion) return deletion
  await setDiskState(tx, disk.id, 'deleting', ['creating', 'available', 'resizing'])
  const operation = await beginOperation(tx, by, diskDelete, {
    resource: disk,
    generation: await raiseDiskGeneration(tx, disk.id),
    ...(disk.group_id !== null && { scratch: { memberOf: disk.group_id } }),
    eventType: 'disk.deleting',
  })
  // A cancelled resize is not undone, so its additional quota is returned here.
  if (grownByGib > 0) await releaseQuota(tx, by.projectId, diskQuota(disk.type, grownByGib))
  return operation
}

async function unfinishedGrowth(tx: Tx, disk: DiskRow): Promise<number> {
  const operations = await lockUnfinishedOperations(tx, disk.id)
  return Number(operations.find(({ name }) => name === 'RESIZE')?.scratch.grownByGib ?? 0)
}

export const diskDelete: Definition = {
  kind: 'disk-delete',
  name: 'DELETE',
  resourceType: 'disk',
  deadlineS: 600,
  isRetriedNotUndone: true,
  steps: [
    { name: 'wait_for_cancelled', call: waitForCancelledOperations },
    { name: 'remove', call: remove },
    { name: 'release', tx: release },
  ],
}

async function remove(work: Work): Promise<Outcome> {
  await removeDisk(work)
  return next()
}

async function release(work: Work, tx: Tx): Promise<Outcome> {
  const disk = await diskOf(work, tx)
  await forgetDisk(work, tx)
  await emitResource(tx, work, disk, 'disk.deleted')
  return done(null)
}
