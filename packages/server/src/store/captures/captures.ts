import type { CaptureConsistency, CaptureState, LabelSelector, Labels } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { fitsLabels, type LabelParams, labelParams } from '../../postgres/labels.ts'
import { filteredStatement, ifGiven, isBefore, type PageParams, statement } from '../../postgres/statement.ts'

export type CaptureKind = 'image' | 'snapshot'

/** A copy of a disk: a custom image or a snapshot. */
export interface CaptureRow {
  id: string
  project_id: string
  kind: CaptureKind
  name: string
  labels: Labels
  description: string
  is_protected: boolean
  tags: string[]
  source_kind: 'vm' | 'disk' | 'snapshot'
  source_id: string
  /** The VM that can write to the source while it is copied. */
  vm_id: string | null
  size: string
  size_gib: number
  block_size: number
  location: string
  host_id: string | null
  host: string | null
  state: CaptureState
  stored_bytes: number | null
  consistency: CaptureConsistency | null
  engine_source: Record<string, unknown> | null
  generation: number
  created_at: Date
  updated_at: Date
}

const selectCapture = 'SELECT c.*, h.name AS host FROM captures c LEFT JOIN hosts h ON h.id = c.host_id'

/** Finds a custom image or snapshot of a project. */
export const findCapture = statement<CaptureRow, { projectId: string; id: string }>(
  'capture_by_id',
  `${selectCapture} WHERE c.id = :id AND c.project_id = :projectId`,
).oneBy('projectId', 'id')

const lock = statement<never, { projectId: string; kind: string; id: string }>(
  'capture_lock',
  'SELECT id FROM captures WHERE id = :id AND project_id = :projectId AND kind = :kind FOR UPDATE',
)

// A deletion waits for this lock, so that it sees the VM or disk that is created from the image or snapshot.
const share = statement<{ id: string }, { id: string }>(
  'capture_share',
  `SELECT id FROM captures WHERE id = :id AND state = 'available' FOR KEY SHARE`,
)

// `ref` is an id, a complete name, or a name without a version, which means the newest image with that name and
// any version.
const imageByRef = statement<CaptureRow, { projectId: string; ref: string }>(
  'capture_image_by_ref',
  `${selectCapture}
   WHERE c.project_id = :projectId AND c.kind = 'image'
     AND (c.id::text = lower(:ref) OR c.name = :ref OR starts_with(c.name, :ref || ':'))
   ORDER BY c.id::text = lower(:ref) DESC, c.state = 'available' DESC, c.id DESC LIMIT 1`,
)

interface CaptureFilter extends PageParams {
  projectId: string
  kind: CaptureKind
  names: string[] | null
  sourceIds: string[] | null
  namePrefix: string | null
}

const list = filteredStatement<CaptureRow, CaptureFilter & LabelParams>(
  'capture_list',
  (given) => `${selectCapture}
   WHERE c.project_id = :projectId AND c.kind = :kind AND ${isBefore('c.id')} AND ${fitsLabels('c.labels')}
     AND ${ifGiven(':namePrefix::text', 'starts_with(c.name, :namePrefix)')} ${given}
   ORDER BY c.id DESC LIMIT :limit`,
  { names: 'c.name = ANY (:names)', sourceIds: 'c.source_id = ANY (:sourceIds)' },
)

const insert = statement<never, NewCapture>(
  'capture_insert',
  `INSERT INTO captures (id, project_id, kind, name, labels, description, is_protected, tags, source_kind, source_id, vm_id,
                         size, size_gib, block_size, location, host_id, state)
   VALUES (:id, :projectId, :kind, :name, :labels, :description, :isProtected, :tags, :sourceKind, :sourceId, :vmId,
           :size, :sizeGib, :blockSize, :location, :hostId, 'creating')`,
)

const finish = statement<{ id: string }, { id: string } & CaptureResult>(
  'capture_finish',
  `UPDATE captures SET state = 'available', stored_bytes = :storedBytes, consistency = :consistency,
          engine_source = :source, vm_id = NULL, updated_at = slipway_now()
   WHERE id = :id AND state = 'creating' RETURNING id`,
)

const moveToDeleting = statement<{ generation: number }, { id: string }>(
  'capture_move_to_deleting',
  `UPDATE captures SET state = 'deleting', vm_id = NULL, generation = generation + 1, updated_at = slipway_now()
   WHERE id = :id RETURNING generation`,
)

const annotate = statement<never, { id: string } & CaptureChange>(
  'capture_annotate',
  `UPDATE captures SET name = coalesce(:name, name), labels = coalesce(:labels, labels), tags = coalesce(:tags, tags),
          description = coalesce(:description, description), is_protected = coalesce(:isProtected, is_protected),
          updated_at = slipway_now()
   WHERE id = :id`,
)

export const deleteCaptureRow = statement<never, { id: string }, Tx>(
  'capture_delete',
  'DELETE FROM captures WHERE id = :id',
).runBy('id')

/** Finds a copy in progress whose source is one of these resources, or can be written by one of these VMs. */
export const findCaptureInProgress = statement<Pick<CaptureRow, 'id' | 'kind' | 'name'>, { ids: string[] }>(
  'capture_in_progress',
  `(SELECT id, kind, name FROM captures WHERE state = 'creating' AND source_id = ANY (:ids::uuid[]) LIMIT 1)
   UNION ALL
   (SELECT id, kind, name FROM captures WHERE state = 'creating' AND vm_id = ANY (:ids::uuid[]) LIMIT 1)
   LIMIT 1`,
).oneBy('ids')

/** Finds the copy that is being created from this VM, disk or snapshot itself. */
export const findCopyInProgress = statement<Pick<CaptureRow, 'id' | 'kind' | 'name'>, { sourceId: string }>(
  'capture_copy_in_progress',
  `SELECT id, kind, name FROM captures WHERE state = 'creating' AND source_id = :sourceId`,
).oneBy('sourceId')

/** Finds a VM or disk that is being created from the copy. */
export const findDependentInCreation = statement<
  { what: 'VM' | 'disk'; id: string; name: string },
  { id: string }
>(
  'capture_user',
  `(SELECT 'VM' AS what, id, name FROM vms WHERE custom_image_id = :id AND state = 'STATE_CREATING' LIMIT 1)
   UNION ALL
   (SELECT 'disk', id, name FROM disks WHERE snapshot_id = :id AND state = 'creating' LIMIT 1)
   LIMIT 1`,
).oneBy('id')

export const lockCapturesOfHost = statement<{ id: string; project_id: string }, { hostId: string }, Tx>(
  'capture_lock_of_host',
  'SELECT id, project_id FROM captures WHERE host_id = :hostId ORDER BY id FOR UPDATE',
).allBy('hostId')

/** Clears the host of an image or snapshot that was lost with its host. */
export const unpinLostCapture = statement<never, { id: string }, Tx>(
  'capture_unpin',
  'UPDATE captures SET host_id = NULL WHERE id = :id',
).runBy('id')

export const findImageByRef = imageByRef.oneBy('projectId', 'ref')

/** Locks a custom image or snapshot of the project, then reads its current row. */
export async function lockCapture(
  tx: Tx,
  projectId: string,
  kind: CaptureKind,
  id: string,
): Promise<CaptureRow | undefined> {
  const count = await lock.run(tx, { projectId, kind, id })
  return count === 0 ? undefined : findCapture(tx, projectId, id)
}

/** Keeps the copy from being deleted until the transaction ends. Returns false if it is not available. */
export const shareCapture = async (tx: Tx, id: string): Promise<boolean> =>
  (await share.one(tx, { id })) !== undefined

export const listCaptures = (
  db: Queryable,
  { labels, ...filter }: CaptureFilter & { labels: LabelSelector | null },
) => list.all(db, { ...filter, ...labelParams(labels) })

export interface NewCapture {
  id: string
  projectId: string
  kind: CaptureKind
  name: string
  labels: Labels
  description: string
  isProtected: boolean
  tags: string[]
  sourceKind: CaptureRow['source_kind']
  sourceId: string
  vmId: string | null
  size: string
  sizeGib: number
  blockSize: number
  location: string
  hostId: string | null
}

/** Violates `captures_project_id_kind_name_key` or `captures_one_of_source`. */
export const insertCapture = (tx: Tx, capture: NewCapture) => insert.run(tx, capture)

/** A complete copy, as its engine reports it. */
export interface CaptureResult {
  storedBytes: number
  consistency: CaptureConsistency
  source: Record<string, unknown>
}

/** Returns false if the copy is no longer being created. */
export const finishCapture = async (tx: Tx, id: string, result: CaptureResult): Promise<boolean> =>
  (await finish.one(tx, { id, ...result })) !== undefined

export const moveCaptureToDeleting = async (tx: Tx, id: string): Promise<number> =>
  (await moveToDeleting.one(tx, { id }))!.generation

export interface CaptureChange {
  name: string | null
  labels: Labels | null
  tags: string[] | null
  description: string | null
  isProtected: boolean | null
}

/** Null leaves a value unchanged. Violates `captures_project_id_kind_name_key` if the name is taken. */
export const annotateCapture = (tx: Tx, id: string, change: CaptureChange) =>
  annotate.run(tx, { id, ...change })
