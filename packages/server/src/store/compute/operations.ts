import type { OperationResourceType, OperationState } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { gathered } from '../../postgres/gathered.ts'
import { keyedStatement } from '../../postgres/keyed.ts'
import {
  filteredStatement,
  ifGiven,
  isBefore,
  type PageParams,
  type RecordPageParams,
  statement,
  untilPageIsFull,
} from '../../postgres/statement.ts'
import type { OperationRow } from './operation-row.ts'
import { listedOperationRecord } from './operation-view.ts'

export const findOperation = statement<
  OperationRow,
  { projectId: string; id: string; type: OperationResourceType | null }
>(
  'operation_by_id',
  `SELECT * FROM operations
   WHERE project_id = :projectId AND id = :id AND (:type::text IS NULL OR resource_type = :type)`,
).oneBy('projectId', 'id', 'type')

// Unfinished operations are in the queue. Failed operations are few, and have their own indexes.
const isInState = (unfinished: string) =>
  ({
    IN_PROGRESS: `id IN (${unfinished})`,
    SUCCEEDED: `state = 'SUCCEEDED'`,
    FAILED: `state = 'FAILED'`,
  }) satisfies Record<OperationState, string>

interface OperationFilter extends RecordPageParams {
  projectId: string
  type: OperationResourceType | null
  state: OperationState | null
  resourceId: string | null
}

export const listOperations = filteredStatement<{ id: string; record: string }, OperationFilter>(
  'operation_list',
  (given) =>
    untilPageIsFull(
      'id',
      `SELECT o.id, ${listedOperationRecord} AS record FROM operations o
       WHERE project_id = :projectId AND ${isBefore('id')}
         AND ${ifGiven(':type::text', 'resource_type = :type')} ${given}
       ORDER BY id DESC LIMIT :limit`,
    ),
  {
    resourceId: 'resource_id = :resourceId',
    state: isInState('SELECT operation_id FROM operation_queue WHERE project_id = :projectId'),
  },
).all

// The subquery looks up each operation by its id. If the tables had no statistics, a join would read them
// completely.
const unfinished = statement<OperationRow, { resourceIds: string[] }>(
  'operation_unfinished',
  `SELECT o.* FROM operation_queue q, LATERAL (SELECT * FROM operations WHERE id = q.operation_id LIMIT 1) o
   WHERE q.resource_id = ANY (:resourceIds::uuid[]) ORDER BY q.resource_id, q.is_deletion DESC FOR UPDATE OF q`,
)

// A resource has at most two unfinished operations, one of which is a deletion, so at most one other is found.
const other = keyedStatement<object, { resourceId: string; id: string }>(
  'operation_other_unfinished',
  `SELECT w.resource_id AS "resourceId", w.id FROM unnest(:resourceId::uuid[], :id::uuid[]) AS w (resource_id, id)
   JOIN operation_queue q ON q.resource_id = w.resource_id AND q.operation_id <> w.id`,
)

/**
 * Makes an operation due if it waits for something that may have happened. Operations that a worker holds,
 * and operations that pause after a failure, are not changed. Returns the number of operations that are due
 * now.
 */
export const makeOperationDue = statement<never, { resourceId: string }>(
  'operation_hasten',
  `UPDATE operation_queue q SET run_at = slipway_now() FROM operations o
   WHERE q.resource_id = :resourceId AND q.lease_token IS NULL AND q.run_at > slipway_now()
     AND o.id = q.operation_id AND o.attempts = 0`,
).runBy('resourceId')

/** Locks the operations on these resources that no worker holds and that are not cancelled. */
export const lockParkedOperations = statement<OperationRow, { resourceIds: string[] }, Tx>(
  'operation_parked',
  `SELECT o.* FROM operation_queue q, LATERAL (SELECT * FROM operations WHERE id = q.operation_id LIMIT 1) o
   WHERE q.resource_id = ANY (:resourceIds::uuid[]) AND q.lease_token IS NULL AND NOT q.is_cancelled
   ORDER BY q.operation_id FOR UPDATE OF q`,
).allBy('resourceIds')

interface ChildRow {
  id: string
  state: OperationState
  result: { code: string; message: string } | null
}

/** Reads the operations that another operation waits for. */
export const findChildOperations = statement<ChildRow, { ids: string[] }>(
  'operation_children',
  'SELECT id, state, result FROM operations WHERE id = ANY (:ids::uuid[]) ORDER BY id',
).allBy('ids')

export const cancelOperation = statement<never, { id: string }, Tx>(
  'operation_cancel',
  'UPDATE operation_queue SET is_cancelled = true WHERE operation_id = :id',
).runBy('id')

export const findAnyOperation = statement<OperationRow, { id: string }>(
  'operation_admin_by_id',
  'SELECT * FROM operations WHERE id = :id',
).oneBy('id')

// While a worker holds an operation, `run_at` is the end of its lease.
export const findOperationWithSchedule = statement<
  OperationRow & { next_attempt_at: Date | null },
  { id: string }
>(
  'operation_admin_with_schedule',
  `SELECT o.*, q.run_at AS next_attempt_at FROM operations o
   LEFT JOIN operation_queue q ON q.operation_id = o.id AND q.lease_token IS NULL WHERE o.id = :id`,
).oneBy('id')

interface AdminOperationFilter extends PageParams {
  isStuck: boolean | null
  state: OperationState | null
}

const listOfAll = filteredStatement<OperationRow, AdminOperationFilter>(
  'operation_admin_list',
  (given) => `SELECT * FROM operations WHERE ${isBefore('id')} ${given} ORDER BY id DESC LIMIT :limit`,
  {
    isStuck: { true: 'is_stuck', false: 'NOT is_stuck' },
    state: isInState('SELECT operation_id FROM operation_queue'),
  },
)

// A resource has few operations, so its index serves every filter.
const listOfResource = statement<OperationRow, AdminOperationFilter & { resourceId: string }>(
  'operation_admin_list_of_resource',
  `SELECT * FROM operations
   WHERE resource_id = :resourceId AND ${isBefore('id')}
     AND ${ifGiven(':isStuck::boolean', 'is_stuck = :isStuck')} AND ${ifGiven(':state::text', 'state = :state')}
   ORDER BY id DESC LIMIT :limit`,
)

/** Lists the operations of all tenants, or of one resource. */
export const listAllOperations = (
  db: Queryable,
  { resourceId, ...filter }: AdminOperationFilter & { resourceId: string | null },
): Promise<OperationRow[]> =>
  resourceId === null ? listOfAll.all(db, filter) : listOfResource.all(db, { ...filter, resourceId })

export const retryStuckOperation = statement<OperationRow, { id: string }, Tx>(
  'operation_retry_stuck',
  `WITH due AS (UPDATE operation_queue SET run_at = slipway_now() WHERE operation_id = :id RETURNING operation_id)
   UPDATE operations SET is_stuck = false, attempts = 0 FROM due WHERE id = due.operation_id AND is_stuck RETURNING operations.*`,
).oneBy('id')

/** Takes a stuck operation. If a worker holds it, the worker loses its lease. */
export const takeStuckOperation = statement<OperationRow, { id: string }, Tx>(
  'operation_take_stuck',
  `WITH taken AS (UPDATE operation_queue SET lease_token = NULL WHERE operation_id = :id RETURNING operation_id)
   SELECT o.* FROM operations o JOIN taken ON o.id = taken.operation_id WHERE o.is_stuck FOR UPDATE OF o`,
).oneBy('id')

export const pruneOperations = statement<never, { limit: number }>(
  'operation_prune',
  `DELETE FROM operations WHERE id IN (
     SELECT id FROM operations WHERE completed_at < slipway_now() - interval '90 days'
     ORDER BY completed_at LIMIT :limit)`,
).runBy('limit')

/** Locks the unfinished operations of a resource; its deletion comes first. */
export const lockUnfinishedOperations = gathered(async (tx: Tx, resourceIds: string[]) => {
  const operations = await unfinished.all(tx, { resourceIds })
  return resourceIds.map((id) => operations.filter(({ resource_id }) => resource_id === id))
})

/** Finds the unfinished operation of a resource, without a lock; its deletion comes first. */
export const findUnfinishedOperation = statement<{ id: string }, { resourceId: string }>(
  'operation_unfinished_of',
  `SELECT operation_id AS id FROM operation_queue
   WHERE resource_id = :resourceId ORDER BY is_deletion DESC LIMIT 1`,
).oneBy('resourceId')

/** Returns whether another operation on the same resource is unfinished. */
export const hasOtherUnfinished = async (
  db: Queryable,
  { id, resource_id }: Pick<OperationRow, 'id' | 'resource_id'>,
): Promise<boolean> => (await other.one(db, { resourceId: resource_id, id })) !== undefined
