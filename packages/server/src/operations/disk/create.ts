import type { DiskCreate, DiskType } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { diskSizeProblem, parseDiskSize, sizeGb, sizeTib } from '../../domain/sizes.ts'
import { type DiskSpec, type Engine, EngineError } from '../../engines/engine.ts'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import { closeUsage, openUsage } from '../../store/billing/usage.ts'
import {
  type DiskRow,
  deleteDiskRow,
  diskView,
  findDisk,
  insertDisk,
  moveDisk,
} from '../../store/compute/disks.ts'
import type { OperationRow } from '../../store/compute/operations.ts'
import { giveBackQuota } from '../../store/compute/quotas.ts'
import { serialNumberOf } from '../../store/compute/vms.ts'
import { type Queryable, type Tx, violatedConstraint } from '../../store/database.ts'
import { emit } from '../../store/events/events.ts'
import { findLocation } from '../../store/fleet/locations.ts'
import { beginOperation, type ProjectRequester, requireQuota } from '../admission.ts'
import { callOf, engineAt } from '../engine-work.ts'

export async function admitDiskCreate(tx: Tx, by: ProjectRequester, body: DiskCreate): Promise<OperationRow> {
  const type = body.type ?? 'persistent-ssd'
  const problem = diskSizeProblem(type, body.size)
  if (problem) throw invalidField('size', problem)
  if (type === 'shared-volume' && body.block_size !== undefined)
    throw invalidField('block_size', 'is only for persistent-ssd')
  if (!(await findLocation(tx, body.location)))
    throw invalidField('location', 'is not a location; GET …/locations lists them')
  const id = uuid()
  const sizeGib = parseDiskSize(body.size)!.gib
  try {
    await insertDisk(tx, {
      id,
      projectId: by.projectId,
      name: body.name,
      type,
      size: body.size,
      sizeGib,
      location: body.location,
      blockSize: type === 'shared-volume' ? 0 : (body.block_size ?? 512),
      serialNumber: serialNumberOf(id),
    })
  } catch (error) {
    if (violatedConstraint(error) === 'disks_project_id_name_key')
      throw new Failure('already_exists', `There is already a disk called ${body.name}: choose another name.`)
    throw error
  }
  const operation = await beginOperation(tx, by, diskCreate, {
    resourceId: id,
    generation: 1,
    request: body,
    eventType: 'disk.creating',
    eventData: { name: body.name, size: body.size, location: body.location },
  })
  await requireQuota(tx, by.projectId, diskQuota(type, sizeGib))
  return operation
}

/** Which quota a disk takes, and how much of it. */
export const diskQuota = (type: DiskType, sizeGib: number) =>
  type === 'shared-volume' ? { shared_volume_tib: sizeTib(sizeGib) } : { disk_gib: sizeGib }

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

async function create(work: Work): Promise<Outcome> {
  const disk = await diskOf(work)
  const engine = engineAt(work.services, disk.location)
  await engine.ensureDisk(diskSpec(disk), callOf(work))
  await requireSize(engine, diskSpec(disk), work)
  return next()
}

/** Made or grown is what inspection shows so. */
export async function requireSize(engine: Engine, disk: DiskSpec, work: Work): Promise<void> {
  const sizeGib = (await engine.inspectDisk(disk, work.signal))?.sizeGib ?? 0
  if (sizeGib < disk.sizeGib)
    throw new EngineError('unavailable', `the engine shows the disk with ${sizeGib} of ${disk.sizeGib} GiB`)
}

async function finish(work: Work, tx: Tx): Promise<Outcome> {
  const disk = await diskOf(work, tx)
  if (!(await moveDisk(tx, disk.id, 'available', ['creating'])))
    throw new Failure('conflict', `The disk went to ${disk.state} meanwhile.`)
  await meterDisk(tx, disk, disk.size_gib)
  await tellOfDisk(tx, work, disk, 'disk.available')
  return done(diskView(await diskOf(work, tx)))
}

export async function meterDisk(tx: Tx, disk: DiskRow, sizeGib: number): Promise<void> {
  await closeUsage(tx, disk.id)
  await openUsage(tx, {
    projectId: disk.project_id,
    location: disk.location,
    resourceType: 'disk',
    resourceId: disk.id,
    productName: disk.type,
    quantity: sizeGb(sizeGib),
  })
}

export const tellOfDisk = (tx: Tx, work: Work, disk: DiskRow, type: string): Promise<void> =>
  emit(tx, {
    type,
    resourceType: 'disk',
    resourceId: disk.id,
    projectId: disk.project_id,
    actor: work.operation.actor,
    requestId: work.operation.request_id,
    data: { name: disk.name, operation_id: work.operation.id },
  })
