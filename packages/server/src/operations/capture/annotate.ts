import type { AnnotationUpdate, CustomImageUpdate } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { relabelUsage } from '../../store/billing/usage.ts'
import { annotateCapture, type CaptureRow, findCapture } from '../../store/captures/captures.ts'
import { emit } from '../../store/events/events.ts'
import type { ProjectRequester } from '../admission.ts'
import { kinds, writeWithUniqueName } from './capture.ts'

/** Returns the changed row. The caller has locked it. */
export async function annotate(
  tx: Tx,
  by: ProjectRequester,
  { id, kind, name, state }: CaptureRow,
  change: AnnotationUpdate & CustomImageUpdate,
): Promise<CaptureRow> {
  const { resourceType, noun } = kinds[kind]
  if (state === 'deleting')
    throw new Failure('conflict', `The ${noun} ${name} is being deleted and cannot be changed.`)
  await writeWithUniqueName(kind, change.name ?? name, () =>
    annotateCapture(tx, id, {
      name: change.name ?? null,
      labels: change.labels ?? null,
      tags: change.tags ?? null,
      description: change.description ?? null,
      isProtected: change.deletion_protection ?? null,
    }),
  )
  const changed = (await findCapture(tx, by.projectId, id))!
  await relabelUsage(tx, [id], changed.name, changed.labels)
  const data = { name: changed.name, labels: changed.labels, ...change }
  await emit(tx, { ...by, type: `${resourceType}.updated`, resourceType, resourceId: id, data })
  return changed
}
