import type { DiskCreate } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { diskSizeProblem, parseDiskSize } from '../../domain/sizes.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import { findDisk, findDiskView, insertDisk, moveDisk, type NewDisk } from '../../store/compute/disks.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { serialNumberOf } from '../../store/compute/vms.ts'
import type { Requester } from '../../store/events/events.ts'
import { beginOperation, type ProjectRequester, requireQuota } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { requireLocation } from '../catalogue.ts'
import { callOf, emitResource, engineAt } from '../engine-work.ts'
import { admitDiskDelete } from './delete.ts'
import {
  diskNameOrConflict,
  diskOf,
  diskQuota,
  diskSpec,
  forgetDisk,
  meterDisk,
  removeDisk,
  requireSize,
} from './disk.ts'

export async function admitDiskCreate(
  tx: Tx,
  by: ProjectRequester,
  body: DiskCreate,
): Promise<BegunOperation> {
  const type = body.type ?? 'persistent-ssd'
  const problem = diskSizeProblem(type, body.size)
  if (problem) throw invalidField('size', problem)
  await requireLocation(tx, body.location)
  const id = uuid()
  const disk: NewDisk = {
    id,
    projectId: by.projectId,
    name: body.name,
    type,
    size: body.size,
    sizeGib: parseDiskSize(body.size)!.gib,
    location: body.location,
    blockSize: body.block_size ?? (type === 'shared-volume' ? 0 : 512),
    serialNumber: serialNumberOf(id),
    labels: body.labels ?? {},
    description: body.description ?? '',
    isProtected: body.deletion_protection ?? false,
    groupId: null,
  }
  await diskNameOrConflict(body.name, () => insertDisk(tx, disk))
  const operation = await beginOperation(tx, by, diskCreate, {
    resource: disk,
    generation: 1,
    request: body,
    eventType: 'disk.creating',
    eventData: { size: body.size, location: body.location },
  })
  const overBudget = await budgetRefusal(tx, by.projectId)
  if (overBudget) throw overBudget
  await requireQuota(tx, by.projectId, diskQuota(type, disk.sizeGib))
  return operation
}

export const diskCreate: Definition = {
  kind: 'disk-create',
  name: 'CREATE',
  resourceType: 'disk',
  deadlineS: 600,
  steps: [
    { name: 'admit', undoTx: forgetDisk },
    { name: 'create', call: create, undoCall: removeDisk },
    { name: 'finish', tx: finish },
  ],
  onAbandon: deleteAbandoned,
}

/** A deletion is retried until it succeeds, so that nothing of the failed creation remains. */
async function deleteAbandoned(
  tx: Tx,
  by: Requester,
  { project_id, resource_id }: OperationRow,
): Promise<void> {
  const disk = await findDisk(tx, project_id, resource_id)
  if (disk) await admitDiskDelete(tx, { ...by, projectId: project_id }, disk)
}

async function create(work: Work): Promise<Outcome> {
  const disk = await diskOf(work)
  const engine = engineAt(work.services, disk.location)
  await engine.ensureDisk(diskSpec(disk), callOf(work))
  await requireSize(engine, diskSpec(disk), work)
  return next()
}

async function finish(work: Work, tx: Tx): Promise<Outcome> {
  const disk = await diskOf(work, tx)
  if (!(await moveDisk(tx, disk.id, 'available', ['creating'])))
    throw new Failure('conflict', `The disk changed to ${disk.state} in the meantime.`)
  await meterDisk(tx, disk, disk.size_gib)
  await emitResource(tx, work, disk, 'disk.available')
  return done((await findDiskView(tx, disk.project_id, disk.id))!)
}
