import type { EventType } from '@slipway/contract'
import { Failure, nameTaken } from '../../domain/failure.ts'
import { type CaptureRef, EngineError } from '../../engines/engine.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import type { Work } from '../../runner/operation.ts'
import { closeUsage, openUsage } from '../../store/billing/usage.ts'
import {
  type CaptureKind,
  type CaptureRow,
  deleteCaptureRow,
  findCapture,
  findCaptureInProgress,
  findCopyInProgress,
} from '../../store/captures/captures.ts'
import { emit } from '../../store/events/events.ts'
import { blockedBy } from '../admission.ts'
import { writeOrRefuse } from '../conflicts.ts'
import { callOf, engineAt } from '../engine-work.ts'

interface KindFacts {
  resourceType: 'custom_image' | 'snapshot'
  /** The name of the kind in messages. */
  noun: string
  quota: 'custom_images' | 'snapshots'
  product: string
}

export const kinds: Record<CaptureKind, KindFacts> = {
  image: {
    resourceType: 'custom_image',
    noun: 'custom image',
    quota: 'custom_images',
    product: 'custom-image',
  },
  snapshot: { resourceType: 'snapshot', noun: 'snapshot', quota: 'snapshots', product: 'snapshot' },
}

/** Runs a write. Throws a 409 if another image or snapshot of the project has this name. */
export const writeWithUniqueName = <T>(
  kind: CaptureKind,
  name: string,
  write: () => Promise<T>,
): Promise<T> =>
  writeOrRefuse({ captures_project_id_kind_name_key: nameTaken(kinds[kind].noun, name) }, write)

/** Returns the image or snapshot of an operation. Only a deletion removes it, so it exists during every other operation. */
export async function captureOf(work: Work, db: Queryable = work.services.database): Promise<CaptureRow> {
  const { project_id, resource_id } = work.operation
  const capture = await findCapture(db, project_id, resource_id)
  if (!capture) throw new Failure('not_found', 'The image or snapshot no longer exists.')
  return capture
}

export const captureRef = ({ id, host }: CaptureRow): CaptureRef => ({ id, host: host ?? '' })

/** Deletes the row and closes its meter. */
export async function forgetCapture(tx: Tx, { id }: CaptureRow): Promise<void> {
  await closeUsage(tx, id)
  await deleteCaptureRow(tx, id)
}

/** Removes the image or snapshot at its engine, then verifies by inspection. */
export async function removeCapture(work: Work): Promise<void> {
  const capture = await captureOf(work)
  const engine = engineAt(work.services, capture.location)
  await engine.removeCapture(captureRef(capture), callOf(work))
  if (await engine.inspectCapture(captureRef(capture), work.signal))
    throw new EngineError(
      'unavailable',
      `the engine still reports the ${kinds[capture.kind].noun} after removing it`,
    )
}

const bytesPerGib = 1024 ** 3

/** Starts billing the capture by its stored size, rounded up to whole GiB. */
export const meterCapture = (tx: Tx, capture: CaptureRow, storedBytes: number): Promise<void> =>
  openUsage(tx, {
    projectId: capture.project_id,
    location: capture.location,
    resourceType: kinds[capture.kind].resourceType,
    resourceId: capture.id,
    resourceName: capture.name,
    labels: capture.labels,
    productName: kinds[capture.kind].product,
    quantity: Math.max(1, Math.ceil(storedBytes / bytesPerGib)),
  })

/** Emits an event about the image or snapshot of the operation. */
export const emitCapture = (
  tx: Tx,
  { operation }: Work,
  { kind, name, labels }: CaptureRow,
  change: 'available' | 'failed' | 'deleted',
  more: Record<string, unknown> = {},
): Promise<void> =>
  emit(tx, {
    type: `${kinds[kind].resourceType}.${change}` satisfies EventType,
    resourceType: operation.resource_type,
    resourceId: operation.resource_id,
    projectId: operation.project_id,
    actor: operation.actor,
    requestId: operation.request_id,
    data: { name, labels, operation_id: operation.id, ...more },
  })

/** Throws a 409 while one of these VMs, disks or snapshots is being copied. The caller has locked their rows. */
export async function requireUncaptured(tx: Tx, ids: string[], what: string): Promise<void> {
  const capture = ids.length > 0 ? await findCaptureInProgress(tx, ids) : undefined
  if (capture) throw await beingCopied(tx, capture, what)
}

/** Throws a 409 while another image or snapshot is being created from the source. The caller has locked the source. */
export async function requireUncopied(tx: Tx, sourceId: string): Promise<void> {
  const capture = await findCopyInProgress(tx, sourceId)
  if (capture) throw await beingCopied(tx, capture, 'The source')
}

const beingCopied = (tx: Tx, { id, kind, name }: Pick<CaptureRow, 'id' | 'kind' | 'name'>, what: string) =>
  blockedBy(
    tx,
    id,
    `${what} is being copied: the ${kinds[kind].noun} ${name} is being created. Wait until the creation has finished.`,
  )
