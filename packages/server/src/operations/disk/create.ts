import type { DiskCreate } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { diskSizeProblem, parseDiskSize } from '../../domain/sizes.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import { findDisk, findDiskView, insertDisk, moveDisk } from '../../store/compute/disks.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { serialNumberOf } from '../../store/compute/vms.ts'
import type { Requester } from '../../store/events/events.ts'
import { beginOperation, type ProjectRequester, requireQuota } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { requireLocation } from '../catalogue.ts'
import { callOf, engineAt } from '../engine-work.ts'
import { admitDiskDelete } from './delete.ts'
import {
  diskNameOrConflict,
  diskOf,
  diskQuota,
  diskSpec,
  emitDisk,
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
  const sizeGib = parseDiskSize(body.size)!.gib
  const labels = body.labels ?? {}
  await diskNameOrConflict(body.name, () =>
    insertDisk(tx, {
      id,
      projectId: by.projectId,
      name: body.name,
      type,
      size: body.size,
      sizeGib,
      location: body.location,
      blockSize: body.block_size ?? (type === 'shared-volume' ? 0 : 512),
      serialNumber: serialNumberOf(id),
      labels,
      description: body.description ?? '',
      isProtected: body.deletion_protection ?? false,
    }),
  )
  const operation = await beginOperation(tx, by, diskCreate, {
    resourceId: id,
    location: body.location,
    generation: 1,
    request: body,
    eventType: 'disk.creating',
    eventData: { name: body.name, size: body.size, location: body.location, labels },
  })
  const refusal = await budgetRefusal(tx, by.projectId)
  if (refusal) throw refusal
  await requireQuota(tx, by.projectId, diskQuota(type, sizeGib))
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
  onAbandon: tearDown,
}

/** Nothing of a failed creation is left behind: its deletion is tried until it holds. */
async function tearDown(tx: Tx, by: Requester, { project_id, resource_id }: OperationRow): Promise<void> {
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
    throw new Failure('conflict', `The disk went to ${disk.state} meanwhile.`)
  await meterDisk(tx, disk, disk.size_gib)
  await emitDisk(tx, work, disk, 'disk.available')
  return done((await findDiskView(tx, disk.project_id, disk.id))!)
}
