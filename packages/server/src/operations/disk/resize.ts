import { Failure, invalidField } from '../../domain/failure.ts'
import { diskSizeProblem, parseDiskSize } from '../../domain/sizes.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import {
  type DiskRow,
  findDisk,
  findDiskView,
  raiseDiskGeneration,
  resizeDisk,
  setDiskState,
} from '../../store/compute/disks.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { releaseQuota } from '../../store/compute/quotas.ts'
import { beginOperation, type ProjectRequester, requireNoOperation, requireQuota } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { requireUncaptured } from '../capture/capture.ts'
import { callOf, emitResource, engineAt } from '../engine-work.ts'
import { diskOf, diskQuota, diskSpec, meterDisk, requireSize } from './disk.ts'

export async function admitDiskResize(
  tx: Tx,
  by: ProjectRequester,
  disk: DiskRow,
  body: { size: string },
): Promise<BegunOperation> {
  const problem = diskSizeProblem(disk.type, body.size)
  if (problem) throw invalidField('size', problem)
  const sizeGib = parseDiskSize(body.size)!.gib
  if (sizeGib <= disk.size_gib)
    throw invalidField('size', `must be more than ${disk.size}: a disk cannot shrink`)
  await requireNoOperation(tx, disk.id, `The disk ${disk.name}`)
  await requireUncaptured(tx, [disk.id], `The disk ${disk.name}`)
  if (!(await setDiskState(tx, disk.id, 'resizing', ['available'])))
    throw new Failure('conflict', `The disk ${disk.name} is ${disk.state}; it must be available.`)
  const operation = await beginOperation(tx, by, diskResize, {
    resource: disk,
    generation: await raiseDiskGeneration(tx, disk.id),
    request: body,
    scratch: { sizeGib, grownByGib: sizeGib - disk.size_gib },
    eventType: 'disk.resizing',
    eventData: { size: body.size },
  })
  const overBudget = await budgetRefusal(tx, by.projectId)
  if (overBudget) throw overBudget
  await requireQuota(tx, by.projectId, diskQuota(disk.type, sizeGib - disk.size_gib))
  return operation
}

export const diskResize: Definition = {
  kind: 'disk-resize',
  name: 'RESIZE',
  resourceType: 'disk',
  deadlineS: 600,
  steps: [
    { name: 'admit', undoTx: ({ operation, scratch }, tx) => releaseGrowth(tx, operation, scratch) },
    { name: 'grow', call: grow },
    { name: 'finish', tx: finish },
  ],
  onAbandon: (tx, _by, operation) => releaseGrowth(tx, operation, operation.scratch),
}

/**
 * Returns the additional quota of a resize that did not finish. Even if the engine has grown the disk, the tenant
 * is billed only for the previous size.
 */
async function releaseGrowth(tx: Tx, { project_id, resource_id }: OperationRow, scratch: Work['scratch']) {
  const disk = await findDisk(tx, project_id, resource_id)
  if (disk && (await setDiskState(tx, disk.id, 'available', ['resizing'])))
    await releaseQuota(tx, project_id, diskQuota(disk.type, Number(scratch.grownByGib)))
}

async function grow(work: Work): Promise<Outcome> {
  const disk = await diskOf(work)
  const wanted = { ...diskSpec(disk), sizeGib: Number(work.scratch.sizeGib) }
  const engine = engineAt(work.services, disk.location)
  await engine.growDisk(wanted, callOf(work))
  await requireSize(engine, wanted, work)
  return next()
}

async function finish(work: Work, tx: Tx): Promise<Outcome> {
  const disk = await diskOf(work, tx)
  const sizeGib = Number(work.scratch.sizeGib)
  if (!(await setDiskState(tx, disk.id, 'available', ['resizing'])))
    throw new Failure('conflict', `The disk changed to ${disk.state} in the meantime.`)
  await resizeDisk(tx, disk.id, String(work.operation.request.size), sizeGib)
  await meterDisk(tx, disk, sizeGib)
  await emitResource(tx, work, disk, 'disk.available')
  return done((await findDiskView(tx, disk.project_id, disk.id))!)
}
