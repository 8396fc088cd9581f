import { Failure, invalidField } from '../../domain/failure.ts'
import { diskSizeProblem, parseDiskSize } from '../../domain/sizes.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import {
  type DiskRow,
  findDisk,
  findDiskView,
  moveDisk,
  raiseDiskGeneration,
  resizeDisk,
} from '../../store/compute/disks.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { giveBackQuota } from '../../store/compute/quotas.ts'
import { beginOperation, type ProjectRequester, requireIdle, requireQuota } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { callOf, engineAt } from '../engine-work.ts'
import { diskOf, diskQuota, diskSpec, emitDisk, meterDisk, requireSize } from './disk.ts'

export async function admitDiskResize(
  tx: Tx,
  by: ProjectRequester,
  disk: DiskRow,
  body: { size: string },
): Promise<BegunOperation> {
  const problem = diskSizeProblem(disk.type, body.size)
  if (problem) throw invalidField('size', problem)
  const sizeGib = parseDiskSize(body.size)!.gib
  if (sizeGib <= disk.size_gib) throw invalidField('size', `must be more than ${disk.size}: disks only grow`)
  await requireIdle(tx, disk.id, `The disk ${disk.name}`)
  if (!(await moveDisk(tx, disk.id, 'resizing', ['available'])))
    throw new Failure('conflict', `The disk ${disk.name} is ${disk.state}; it must be available.`)
  const operation = await beginOperation(tx, by, diskResize, {
    resourceId: disk.id,
    location: disk.location,
    generation: await raiseDiskGeneration(tx, disk.id),
    request: body,
    scratch: { sizeGib, grownByGib: sizeGib - disk.size_gib },
    eventType: 'disk.resizing',
    eventData: { name: disk.name, size: body.size, labels: disk.labels },
  })
  const refusal = await budgetRefusal(tx, by.projectId)
  if (refusal) throw refusal
  await requireQuota(tx, by.projectId, diskQuota(disk.type, sizeGib - disk.size_gib))
  return operation
}

export const diskResize: Definition = {
  kind: 'disk-resize',
  name: 'RESIZE',
  resourceType: 'disk',
  deadlineS: 600,
  steps: [
    { name: 'admit', undoTx: giveBack },
    { name: 'grow', call: grow },
    { name: 'finish', tx: finish },
  ],
  onAbandon: (tx, _by, operation) => giveBackGrowth(tx, operation, operation.scratch),
}

/** The engine may have grown it all the same: the tenant is not billed for what was not promised. */
async function giveBack({ operation, scratch }: Work, tx: Tx): Promise<void> {
  await giveBackGrowth(tx, operation, scratch)
}

async function giveBackGrowth(tx: Tx, { project_id, resource_id }: OperationRow, scratch: Work['scratch']) {
  const disk = await findDisk(tx, project_id, resource_id)
  if (disk && (await moveDisk(tx, disk.id, 'available', ['resizing'])))
    await giveBackQuota(tx, project_id, diskQuota(disk.type, Number(scratch.grownByGib)))
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
  if (!(await moveDisk(tx, disk.id, 'available', ['resizing'])))
    throw new Failure('conflict', `The disk went to ${disk.state} meanwhile.`)
  await resizeDisk(tx, disk.id, String(work.operation.request.size), sizeGib)
  await meterDisk(tx, disk, sizeGib)
  await emitDisk(tx, work, disk, 'disk.available')
  return done((await findDiskView(tx, disk.project_id, disk.id))!)
}
