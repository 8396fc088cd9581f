import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work } from '../../runner/operation.ts'
import {
  type CaptureKind,
  type CaptureRow,
  findDependentInCreation,
  moveCaptureToDeleting,
} from '../../store/captures/captures.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import {
  beginOperation,
  blockedBy,
  cancelForDeletion,
  type ProjectRequester,
  waitForCancelledOperations,
} from '../admission.ts'
import { captureOf, emitCapture, forgetCapture, kinds, removeCapture, requireUncaptured } from './capture.ts'

/**
 * Throws a 409 while a VM, disk or image is being created from the image or snapshot. The caller has locked
 * the row.
 */
export async function requireUnused(tx: Tx, { id, kind, name }: CaptureRow): Promise<void> {
  const what = `The ${kinds[kind].noun} ${name}`
  const dependent = await findDependentInCreation(tx, id)
  if (dependent)
    throw await blockedBy(
      tx,
      dependent.id,
      `${what} is in use: the ${dependent.what} ${dependent.name} is being created from it. Wait until the creation has finished.`,
    )
  await requireUncaptured(tx, [id], what)
}

export async function admitCaptureDelete(
  tx: Tx,
  by: ProjectRequester,
  capture: CaptureRow,
): Promise<BegunOperation> {
  const definition = capture.kind === 'image' ? customImageDelete : snapshotDelete
  const deletion = await cancelForDeletion(tx, definition, by, capture.id)
  if (deletion) return deletion
  return beginOperation(tx, by, definition, {
    resource: capture,
    generation: await moveCaptureToDeleting(tx, capture.id),
    eventType: `${kinds[capture.kind].resourceType}.deleting`,
  })
}

const deletion = (kind: CaptureKind, operationKind: string): Definition => ({
  kind: operationKind,
  name: 'DELETE',
  resourceType: kinds[kind].resourceType,
  deadlineS: 600,
  isRetriedNotUndone: true,
  steps: [
    { name: 'wait_for_cancelled', call: waitForCancelledOperations },
    { name: 'remove', call: remove },
    { name: 'release', tx: release },
  ],
})

export const customImageDelete = deletion('image', 'custom-image-delete')
export const snapshotDelete = deletion('snapshot', 'snapshot-delete')

async function remove(work: Work): Promise<Outcome> {
  await removeCapture(work)
  return next()
}

async function release(work: Work, tx: Tx): Promise<Outcome> {
  const capture = await captureOf(work, tx)
  await forgetCapture(tx, capture)
  await emitCapture(tx, work, capture, 'deleted')
  return done(null)
}
