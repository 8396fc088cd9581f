import type { Queryable } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

/** An operation that only clients of the compatible API see. */
export interface FamilyOperationRow {
  operation: Record<string, unknown>
  /** The operations that create the VMs of a bulk creation; empty for any other operation. */
  parts: string[]
}

/** How many operations are kept for each project. Storing an operation removes the oldest ones above this number. */
const maxPerProject = 1_000

// A repeated request finds the operation of the first one, and does not change it.
const insert = statement<FamilyOperationRow, NewFamilyOperation>(
  'family_operation_insert',
  `INSERT INTO family_operations (id, project_id, request_hash, operation, parts)
   VALUES (:id, :projectId, :requestHash, :operation::json, :parts::uuid[])
   ON CONFLICT (project_id, request_hash) DO UPDATE SET request_hash = excluded.request_hash
   RETURNING operation, parts`,
)

const trim = statement<never, { projectId: string; kept: number }>(
  'family_operations_trim',
  `DELETE FROM family_operations
   WHERE project_id = :projectId AND id <= (
     SELECT id FROM family_operations WHERE project_id = :projectId ORDER BY id DESC OFFSET :kept::int LIMIT 1)`,
)

const prune = statement<never, { limit: number }>(
  'prune_family_operations',
  `DELETE FROM family_operations WHERE ctid = ANY (ARRAY(
     SELECT ctid FROM family_operations WHERE created_at < slipway_now() - interval '24 hours' LIMIT :limit))`,
)

interface NewFamilyOperation {
  id: string
  projectId: string
  requestHash: Buffer
  /** JSON text. */
  operation: string
  parts: string[]
}

/**
 * Stores the operation, unless an earlier identical request has stored one. Returns the stored operation.
 */
export async function keepFamilyOperation(
  db: Queryable,
  operation: NewFamilyOperation,
): Promise<FamilyOperationRow> {
  const kept = (await insert.one(db, operation))!
  await trim.run(db, { projectId: operation.projectId, kept: maxPerProject })
  return kept
}

export const findFamilyOperation = statement<FamilyOperationRow, { projectId: string; id: string }>(
  'family_operation_find',
  'SELECT operation, parts FROM family_operations WHERE project_id = :projectId AND id = :id',
).oneBy('projectId', 'id')

/** Returns the operation of an earlier identical request. */
export const findFamilyOperationOfRequest = statement<
  FamilyOperationRow,
  { projectId: string; requestHash: Buffer }
>(
  'family_operation_find_of_request',
  `SELECT operation, parts FROM family_operations
   WHERE project_id = :projectId AND request_hash = :requestHash`,
).oneBy('projectId', 'requestHash')

export const pruneFamilyOperations = (db: Queryable, limit: number): Promise<number> =>
  prune.run(db, { limit })
