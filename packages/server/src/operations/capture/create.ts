import type { Annotations, CustomImageCreate, SnapshotCreate } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import { fullImageName } from '../../domain/guest/images.ts'
import { uuid } from '../../domain/ids.ts'
import { type CaptureSpec, EngineError } from '../../engines/engine.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import {
  type CaptureKind,
  type CaptureResult,
  type CaptureRow,
  findCapture,
  finishCapture,
  insertCapture,
} from '../../store/captures/captures.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import type { Requester } from '../../store/events/events.ts'
import { captureView } from '../../views/captures.ts'
import { beginOperation, type ProjectRequester, requireOrganizationQuota } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { callOf, engineAt, nextInspectionMs } from '../engine-work.ts'
import {
  captureOf,
  captureRef,
  emitCapture,
  forgetCapture,
  kinds,
  meterCapture,
  removeCapture,
  requireUncopied,
  writeWithUniqueName,
} from './capture.ts'
import { admitCaptureDelete } from './delete.ts'
import { type CaptureSource, lockSourceDisk, lockSourceSnapshot, lockSourceVm } from './sources.ts'

export async function admitCustomImageCreate(
  tx: Tx,
  by: ProjectRequester,
  body: CustomImageCreate,
): Promise<BegunOperation> {
  const source = await lockImageSource(tx, by.projectId, body)
  const wanted = { kind: 'image' as const, name: fullImageName(body.name), tags: body.tags ?? [] }
  return admit(tx, by, source, body, { ...wanted, mustFreeze: body.allow_crash_consistent !== true })
}

export async function admitSnapshotCreate(
  tx: Tx,
  by: ProjectRequester,
  body: SnapshotCreate,
): Promise<BegunOperation> {
  const source = await lockSourceDisk(tx, by.projectId, body.disk_id)
  const wanted = { kind: 'snapshot' as const, name: body.name, tags: [] }
  return admit(tx, by, source, body, { ...wanted, mustFreeze: body.require_frozen === true })
}

function lockImageSource(
  tx: Tx,
  projectId: string,
  { vm_id, disk_id, snapshot_id }: CustomImageCreate,
): Promise<CaptureSource> {
  const given = [vm_id, disk_id, snapshot_id].filter((id) => id !== undefined)
  if (given.length !== 1)
    throw invalidField('vm_id', 'exactly one of vm_id, disk_id and snapshot_id is required')
  if (vm_id !== undefined) return lockSourceVm(tx, projectId, vm_id)
  return disk_id !== undefined
    ? lockSourceDisk(tx, projectId, disk_id)
    : lockSourceSnapshot(tx, projectId, snapshot_id!)
}

interface WantedCapture {
  kind: CaptureKind
  name: string
  tags: string[]
  mustFreeze: boolean
}

/** The caller has locked the source, which cannot be changed until the operation ends. */
async function admit(
  tx: Tx,
  by: ProjectRequester,
  { from, ...source }: CaptureSource,
  body: Annotations,
  { kind, name, tags, mustFreeze }: WantedCapture,
): Promise<BegunOperation> {
  const { resourceType, quota } = kinds[kind]
  const id = uuid()
  const labels = body.labels ?? {}
  const notes = {
    labels,
    description: body.description ?? '',
    isProtected: body.deletion_protection ?? false,
  }
  await requireUncopied(tx, source.sourceId)
  await writeWithUniqueName(kind, name, () =>
    insertCapture(tx, { id, projectId: by.projectId, kind, name, tags, ...notes, ...source }),
  )
  const operation = await beginOperation(tx, by, kind === 'image' ? customImageCreate : snapshotCreate, {
    resource: { id, name, location: source.location, labels },
    generation: 1,
    request: body,
    scratch: { from, mustFreeze },
    eventType: `${resourceType}.creating`,
    eventData: { location: source.location, source_id: source.sourceId },
  })
  const overBudget = await budgetRefusal(tx, by.projectId)
  if (overBudget) throw overBudget
  await requireOrganizationQuota(tx, by, quota, 'captured_gib')
  return operation
}

/** Long enough to copy the largest disk. */
const deadlineS = 6 * 3600

const creation = (kind: CaptureKind, operationKind: string): Definition => ({
  kind: operationKind,
  name: 'CREATE',
  resourceType: kinds[kind].resourceType,
  deadlineS,
  steps: [
    { name: 'admit', undoTx: forgetFailed },
    { name: 'capture', call: capture, undoCall: removeCapture },
    { name: 'finish', tx: finish },
  ],
  onAbandon: deleteAbandoned,
})

export const customImageCreate = creation('image', 'custom-image-create')
export const snapshotCreate = creation('snapshot', 'snapshot-create')

async function capture(work: Work): Promise<Outcome> {
  const row = await captureOf(work)
  const engine = engineAt(work.services, row.location)
  await engine.capture(specOf(row, work.scratch), callOf(work)).catch((error) => {
    throw error instanceof EngineError && error.kind === 'unfrozen' ? cannotFreeze(row, error) : error
  })
  const status = await engine.inspectCapture(captureRef(row), work.signal)
  if (!status) throw new EngineError('unavailable', `the engine does not report the ${kinds[row.kind].noun}`)
  if (status.result) return next({ ...status.result })
  const copyingSinceMs = Number(work.scratch.copyingSinceMs ?? work.nowMs)
  return wait(nextInspectionMs(copyingSinceMs, work.nowMs), { copyingSinceMs })
}

const specOf = (row: CaptureRow, { from, mustFreeze }: Work['scratch']): CaptureSpec => ({
  ...captureRef(row),
  kind: row.kind,
  projectId: row.project_id,
  sizeGib: row.size_gib,
  from: from as CaptureSpec['from'],
  mustFreeze: mustFreeze === true,
})

const cannotFreeze = ({ kind }: CaptureRow, cause: EngineError) =>
  new Failure(
    'conflict',
    `The running VM has no guest agent to freeze its file systems. Install the QEMU guest agent, stop the VM, or ${
      kind === 'image' ? 'set allow_crash_consistent' : 'leave out require_frozen'
    }.`,
    { cause },
  )

async function finish(work: Work, tx: Tx): Promise<Outcome> {
  const { storedBytes, consistency, source } = work.scratch as unknown as CaptureResult
  const before = await captureOf(work, tx)
  if (!(await finishCapture(tx, before.id, { storedBytes, consistency, source })))
    throw new Failure(
      'conflict',
      `The ${kinds[before.kind].noun} changed to ${before.state} in the meantime.`,
    )
  await meterCapture(tx, before, storedBytes)
  await emitCapture(tx, work, before, 'available', { stored_bytes: storedBytes, consistency })
  return done(captureView(await captureOf(work, tx)))
}

async function forgetFailed(work: Work, tx: Tx): Promise<void> {
  const row = await captureOf(work, tx)
  await forgetCapture(tx, row)
  await emitCapture(tx, work, row, 'failed', { reason: work.failure?.message ?? '' })
}

/**
 * Deletes the image or snapshot of an abandoned creation. A deletion is retried until it succeeds, so that nothing
 * remains.
 */
async function deleteAbandoned(
  tx: Tx,
  by: Requester,
  { project_id, resource_id }: OperationRow,
): Promise<void> {
  const row = await findCapture(tx, project_id, resource_id)
  if (row) await admitCaptureDelete(tx, { ...by, projectId: project_id }, row)
}
