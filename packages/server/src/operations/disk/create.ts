import type { DiskCreate, DiskType } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { diskSizeProblem, parseDiskSize } from '../../domain/sizes.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import { type CaptureRow, findCapture, shareCapture } from '../../store/captures/captures.ts'
import {
  findDiskView,
  insertDisk,
  lockDisks,
  type NewDisk,
  pinDisk,
  setDiskState,
} from '../../store/compute/disks.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { serialNumberOf } from '../../store/compute/vms.ts'
import type { Requester } from '../../store/events/events.ts'
import { beginOperation, type ProjectRequester, requireQuota } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { captureSource, requireAvailable } from '../capture/sources.ts'
import { requireLocation } from '../catalogue.ts'
import { callOf, emitResource, engineAt, nextInspectionMs } from '../engine-work.ts'
import { admitDiskDelete } from './delete.ts'
import {
  diskOf,
  diskQuota,
  diskSpec,
  forgetDisk,
  meterDisk,
  removeDisk,
  requireSize,
  writeUniqueDiskName,
} from './disk.ts'

/**
 * Writes first and checks the budget and the quota afterwards: a refusal rolls back the transaction, which no other
 * request shares.
 */
export async function admitDiskCreate(
  tx: Tx,
  by: ProjectRequester,
  body: DiskCreate,
): Promise<BegunOperation> {
  const { type, size, sizeGib, location, blockSize, snapshot } = await diskShapeOf(tx, by.projectId, body)
  await requireLocation(tx, location)
  const id = uuid()
  const disk: NewDisk = {
    id,
    projectId: by.projectId,
    name: body.name,
    type,
    size,
    sizeGib,
    location,
    blockSize,
    serialNumber: serialNumberOf(id),
    labels: body.labels ?? {},
    description: body.description ?? '',
    isProtected: body.deletion_protection ?? false,
    groupId: null,
    snapshotId: snapshot?.id ?? null,
  }
  await writeUniqueDiskName(body.name, () => insertDisk(tx, disk))
  // Where storage is local, the disk is created on the snapshot's host.
  if (snapshot?.host_id) await pinDisk(tx, id, snapshot.host_id)
  const operation = await beginOperation(tx, by, snapshot ? diskRestore : diskCreate, {
    resource: disk,
    generation: 1,
    request: body,
    eventType: 'disk.creating',
    eventData: { size, location, ...(snapshot && { snapshot_id: snapshot.id }) },
  })
  const overBudget = await budgetRefusal(tx, by.projectId)
  if (overBudget) throw overBudget
  await requireQuota(tx, by.projectId, diskQuota(type, sizeGib))
  return operation
}

interface DiskShape {
  type: DiskType
  size: string
  sizeGib: number
  location: string
  blockSize: number
  snapshot: CaptureRow | undefined
}

/**
 * Returns the properties of the requested disk, from the request and its snapshot. Throws a 400 if they do
 * not fit together.
 */
export async function diskShapeOf(tx: Tx, projectId: string, body: DiskCreate): Promise<DiskShape> {
  const { type = 'persistent-ssd' } = body
  const snapshot = await snapshotOf(tx, projectId, body)
  const size = body.size ?? snapshot?.size
  if (size === undefined) throw invalidField('size', 'is required')
  const problem = diskSizeProblem(type, size)
  if (problem) throw invalidField('size', problem)
  const location = body.location ?? snapshot?.location
  if (location === undefined) throw invalidField('location', 'is required')
  const sizeGib = parseDiskSize(size)!.gib
  const blockSize = body.block_size ?? snapshot?.block_size ?? (type === 'shared-volume' ? 0 : 512)
  if (snapshot) requireFitting(snapshot, { type, sizeGib, location, blockSize })
  return { type, size, sizeGib, location, blockSize, snapshot }
}

/** Returns the snapshot of the request, which cannot be deleted before the transaction ends. */
async function snapshotOf(
  tx: Tx,
  projectId: string,
  { snapshot_id }: DiskCreate,
): Promise<CaptureRow | undefined> {
  if (snapshot_id === undefined) return undefined
  const snapshot = await findCapture(tx, projectId, snapshot_id)
  if (snapshot?.kind !== 'snapshot') throw invalidField('snapshot_id', 'must be a snapshot of this project')
  await requireAvailable(tx, 'snapshot', snapshot)
  if (!(await shareCapture(tx, snapshot_id)))
    throw new Failure('conflict', `The snapshot ${snapshot.name} is being deleted.`)
  return snapshot
}

function requireFitting(
  { name, size, size_gib, location, block_size }: CaptureRow,
  wanted: Pick<DiskShape, 'type' | 'sizeGib' | 'location' | 'blockSize'>,
): void {
  if (wanted.type === 'shared-volume')
    throw invalidField('type', 'must be persistent-ssd: a shared volume cannot be created from a snapshot')
  if (wanted.sizeGib < size_gib)
    throw invalidField('size', `must be at least ${size}, the size of the snapshot ${name}`)
  if (wanted.location !== location)
    throw invalidField('location', `must be ${location}, the location of the snapshot ${name}`)
  // A copy of an OS disk has no block size (0).
  if (block_size !== 0 && wanted.blockSize !== block_size)
    throw invalidField('block_size', `must be ${block_size}, the block size of the snapshot ${name}`)
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

/** Creates a disk with the content of a snapshot, which may take hours. */
export const diskRestore: Definition = { ...diskCreate, kind: 'disk-restore', deadlineS: 6 * 3600 }

/** Deletes the disk of an abandoned creation. A deletion is retried until it succeeds, so that nothing remains. */
async function deleteAbandoned(
  tx: Tx,
  by: Requester,
  { project_id, resource_id }: OperationRow,
): Promise<void> {
  const [disk] = await lockDisks(tx, project_id, [resource_id])
  if (disk) await admitDiskDelete(tx, { ...by, projectId: project_id }, disk)
}

async function create(work: Work): Promise<Outcome> {
  const disk = await diskOf(work)
  const engine = engineAt(work.services, disk.location)
  const source = disk.snapshot_id ? await sourceOf(work, disk.project_id, disk.snapshot_id) : undefined
  await engine.ensureDisk({ ...diskSpec(disk), ...(source && { source }) }, callOf(work))
  if ((await engine.inspectDisk(diskSpec(disk), work.signal))?.isCopying) {
    const copyingSinceMs = Number(work.scratch.copyingSinceMs ?? work.nowMs)
    return wait(nextInspectionMs(copyingSinceMs, work.nowMs), { copyingSinceMs })
  }
  await requireSize(engine, diskSpec(disk), work)
  return next()
}

async function sourceOf(work: Work, projectId: string, snapshotId: string) {
  const snapshot = await findCapture(work.services.database, projectId, snapshotId)
  if (!snapshot?.engine_source) throw new Failure('not_found', 'The snapshot no longer exists.')
  return captureSource(snapshot)
}

async function finish(work: Work, tx: Tx): Promise<Outcome> {
  const disk = await diskOf(work, tx)
  if (!(await setDiskState(tx, disk.id, 'available', ['creating'])))
    throw new Failure('conflict', `The disk changed to ${disk.state} in the meantime.`)
  await meterDisk(tx, disk, disk.size_gib)
  await emitResource(tx, work, disk, 'disk.available')
  return done((await findDiskView(tx, disk.project_id, disk.id))!)
}
