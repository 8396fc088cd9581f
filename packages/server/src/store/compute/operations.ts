import type { EventType, Operation, OperationName, OperationState, OperationType } from '@slipway/contract'
import { uuid } from '../../domain/ids.ts'
import type { Queryable, Tx } from '../database.ts'
import { filteredStatement, isBefore, statement } from '../statement.ts'
import { time } from '../time.ts'

export interface StepEntry {
  name: string
  state: 'running' | 'done' | 'failed' | 'undone'
  started_at: string
  completed_at: string
}

export interface OperationFailure {
  code: string
  message: string
}

export interface OperationRow {
  id: string
  project_id: string
  kind: string
  name: OperationName
  resource_type: OperationType
  resource_id: string
  /** Where it is done; '' anywhere. */
  location: string
  generation: number
  request: Record<string, unknown>
  state: OperationState
  result: Operation['result']
  step: number
  scratch: Record<string, unknown>
  step_log: StepEntry[]
  attempts: number
  last_error: string
  failure: OperationFailure | null
  is_undoing: boolean
  is_cancelled: boolean
  is_stuck: boolean
  run_at: Date
  actor: string
  request_id: string
  started_at: Date
  completed_at: Date | null
}

export interface NewOperation {
  id: string
  projectId: string
  kind: string
  name: OperationName
  resourceType: OperationType
  resourceId: string
  location: string
  generation: number
  request: unknown
  scratch: Record<string, unknown>
  actor: string
  requestId: string
  /** It is told with the beginning; what comes later has nobody's address. */
  clientAddress: string
  /** The step that the admission itself was, if it counts as one. */
  admittedStep: string | null
  /** The event tells of the beginning. */
  event: { type: EventType; data: Record<string, unknown> }
}

const insert = statement<OperationRow, { operations: string }>(
  'operations_insert',
  `WITH given AS MATERIALIZED (
     SELECT * FROM json_to_recordset(:operations::json) AS g (
       id uuid, "projectId" uuid, kind text, name text, "resourceType" text, "resourceId" uuid, location text,
       generation bigint, request text, scratch jsonb, actor text, "requestId" text, "clientAddress" text,
       "admittedStep" text, "eventId" uuid, "eventType" text, "eventData" jsonb)
   ), begun AS (
     INSERT INTO operations
       (id, project_id, kind, name, resource_type, resource_id, location, generation, request, scratch, actor, request_id,
        step, step_log)
     SELECT g.id, g."projectId", g.kind, g.name, g."resourceType", g."resourceId", g.location, g.generation,
            g.request::json, g.scratch, g.actor, g."requestId",
            CASE WHEN g."admittedStep" IS NULL THEN 0 ELSE 1 END,
            CASE WHEN g."admittedStep" IS NULL THEN '[]'
                 ELSE jsonb_build_array(jsonb_build_object(
                   'name', g."admittedStep", 'state', 'done', 'started_at', t, 'completed_at', t)) END
     FROM given g, to_char(slipway_now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') t RETURNING *
   ), told AS (
     INSERT INTO events (id, project_id, organization_id, type, resource_type, resource_id, actor, request_id,
                         client_address, data)
     SELECT g."eventId", b.project_id, (SELECT organization_id FROM projects WHERE projects.id = b.project_id),
            g."eventType", b.resource_type, b.resource_id, b.actor, b.request_id, g."clientAddress",
            jsonb_build_object('operation_id', b.id, 'operation_name', b.name) || g."eventData"
     FROM begun b JOIN given g ON g.id = b.id
   )
   SELECT * FROM begun`,
)

// One statement ends the operation, tells of it, and wakes a deletion that waits for it.
const end = statement<
  { woken: number },
  { id: string; token: string | null; state: string; result: string | null; stepLog: string; eventId: string }
>(
  'operation_end',
  `WITH ended AS (
     UPDATE operations SET state = :state, result = :result, step_log = :stepLog, completed_at = slipway_now(),
            is_stuck = false, lease_token = NULL, lease_until = NULL
     WHERE id = :id AND lease_token IS NOT DISTINCT FROM :token AND state = 'IN_PROGRESS'
       AND (NOT is_cancelled OR :result::jsonb ->> 'code' = 'cancelled')
     RETURNING *
   ), told AS (
     INSERT INTO events (id, project_id, organization_id, type, resource_type, resource_id, actor, request_id, data)
     SELECT :eventId, e.project_id, (SELECT organization_id FROM projects WHERE projects.id = e.project_id),
            CASE e.state WHEN 'SUCCEEDED' THEN 'operation.succeeded' ELSE 'operation.failed' END,
            e.resource_type, e.resource_id, e.actor, e.request_id,
            jsonb_build_object('operation_id', e.id, 'operation_name', e.name)
              || CASE e.state WHEN 'FAILED' THEN jsonb_build_object('error', e.result) ELSE '{}' END
     FROM ended e
   ), woken AS (
     UPDATE operations o SET run_at = slipway_now() FROM ended e
     WHERE o.resource_id = e.resource_id AND o.id <> e.id AND o.state = 'IN_PROGRESS' AND o.lease_token IS NULL
     RETURNING o.id
   )
   SELECT (SELECT count(*) FROM woken) AS woken FROM ended`,
)

const byId = statement<OperationRow, { projectId: string; id: string; type: string | null }>(
  'operation_by_id',
  `SELECT * FROM operations
   WHERE project_id = :projectId AND id = :id AND (:type::text IS NULL OR resource_type = :type)`,
)

const ended = statement<OperationRow, { ids: string[] }>(
  'operation_ended',
  `SELECT * FROM operations WHERE id = ANY (:ids::uuid[]) AND state <> 'IN_PROGRESS'`,
)

// Unfinished and failed ones are few among all that ever were, and have indexes of their own.
const isInState = {
  IN_PROGRESS: `state = 'IN_PROGRESS'`,
  SUCCEEDED: `state = 'SUCCEEDED'`,
  FAILED: `state = 'FAILED'`,
} satisfies Record<OperationState, string>

const list = filteredStatement<OperationRow, OperationFilter>(
  'operation_list',
  (given) => `SELECT * FROM operations
   WHERE project_id = :projectId AND ${isBefore('id')}
     AND (:type::text IS NULL OR resource_type = :type) ${given}
   ORDER BY id DESC LIMIT :limit`,
  { resourceId: 'resource_id = :resourceId', state: isInState },
)

const unfinished = statement<OperationRow, { resourceId: string }>(
  'operation_unfinished',
  `SELECT * FROM operations WHERE resource_id = :resourceId AND state = 'IN_PROGRESS'
   ORDER BY name = 'DELETE' DESC FOR UPDATE`,
)

// What a worker holds looks by itself; what failed keeps its pause.
const hasten = statement<never, { resourceId: string }>(
  'operation_hasten',
  `UPDATE operations SET run_at = slipway_now()
   WHERE resource_id = :resourceId AND state = 'IN_PROGRESS' AND lease_token IS NULL AND attempts = 0
     AND run_at > slipway_now()`,
)

const cancel = statement<never, { id: string }>(
  'operation_cancel',
  'UPDATE operations SET is_cancelled = true WHERE id = :id',
)

const counts = statement<{ in_progress: number; stuck: number }>(
  'operation_counts',
  `SELECT count(*) AS in_progress, count(*) FILTER (WHERE is_stuck) AS stuck FROM operations WHERE state = 'IN_PROGRESS'`,
)

const adminById = statement<OperationRow, { id: string }>(
  'operation_admin_by_id',
  'SELECT * FROM operations WHERE id = :id',
)

const adminList = filteredStatement<
  OperationRow,
  { beforeId: string | null; isStuck: boolean | null; state: string | null; limit: number }
>(
  'operation_admin_list',
  (given) => `SELECT * FROM operations WHERE ${isBefore('id')} ${given} ORDER BY id DESC LIMIT :limit`,
  { isStuck: { true: 'is_stuck', false: 'NOT is_stuck' }, state: isInState },
)

const retryStuck = statement<OperationRow, { id: string }>(
  'operation_retry_stuck',
  `UPDATE operations SET is_stuck = false, attempts = 0, run_at = slipway_now()
   WHERE id = :id AND is_stuck AND state = 'IN_PROGRESS' RETURNING *`,
)

// Whoever works on it at this moment finds its lease gone.
const takeStuck = statement<OperationRow, { id: string }>(
  'operation_take_stuck',
  `UPDATE operations SET lease_token = NULL, lease_until = NULL
   WHERE id = :id AND is_stuck AND state = 'IN_PROGRESS' RETURNING *`,
)

const prune = statement<never, { most: number }>(
  'operation_prune',
  `DELETE FROM operations WHERE id IN (
     SELECT id FROM operations WHERE completed_at < slipway_now() - interval '90 days'
     ORDER BY completed_at LIMIT :most)`,
)

/** Writes them, each with the event that tells of it, and wakes a runner after the commit. Returns them in this order. */
export async function insertOperations(tx: Tx, operations: NewOperation[]): Promise<OperationRow[]> {
  tx.signal('operations')
  tx.signal('events')
  const given = operations.map(({ event, ...operation }) => ({
    ...operation,
    // As text it may hold what only JSON can say, such as half a surrogate pair.
    request: JSON.stringify(operation.request),
    eventId: uuid(),
    eventType: event.type,
    eventData: event.data,
  }))
  const rows = await insert.all(tx, { operations: JSON.stringify(given) })
  const byId = new Map(rows.map((row) => [row.id, row]))
  return operations.map(({ id }) => byId.get(id)!)
}

/**
 * Ends it and wakes, after the commit, whoever waits for it. Returns false when the lease is lost, or when it was
 * cancelled and may only end so.
 */
export async function endOperation(
  tx: Tx,
  { id, token }: { id: string; token: string | null },
  state: 'SUCCEEDED' | 'FAILED',
  result: unknown,
  stepLog: StepEntry[],
): Promise<boolean> {
  const text = result === null ? null : JSON.stringify(result)
  const row = await end.one(tx, {
    id,
    token,
    state,
    result: text,
    stepLog: JSON.stringify(stepLog),
    eventId: uuid(),
  })
  if (!row) return false
  tx.signal('ended', id)
  tx.signal('events')
  if (row.woken > 0) tx.signal('operations')
  return true
}

export const findOperation = (db: Queryable, projectId: string, id: string, type: OperationType | null) =>
  byId.one(db, { projectId, id, type })

/** Those of them that have ended. */
export const findEndedOperations = (db: Queryable, ids: string[]) => ended.all(db, { ids })

export interface OperationFilter {
  projectId: string
  beforeId: string | null
  type: OperationType | null
  state: OperationState | null
  resourceId: string | null
  limit: number
}

export const listOperations = (db: Queryable, f: OperationFilter) => list.all(db, f)

/** Locks them; the deletion comes first. */
export const findUnfinishedOperations = (tx: Tx, resourceId: string) => unfinished.all(tx, { resourceId })
/** What it waits for may have happened: it is due now. Returns how many were made so. */
export const hastenOperation = (db: Queryable, resourceId: string) => hasten.run(db, { resourceId })
export const cancelOperation = (tx: Tx, id: string) => cancel.run(tx, { id })

export async function countOperations(db: Queryable) {
  const row = await counts.one(db)
  return { inProgress: row?.in_progress ?? 0, stuck: row?.stuck ?? 0 }
}

export const findAnyOperation = (db: Queryable, id: string) => adminById.one(db, { id })
export const listAllOperations = (
  db: Queryable,
  f: { beforeId: string | null; isStuck: boolean | null; state: OperationState | null; limit: number },
) => adminList.all(db, f)
export const retryStuckOperation = (tx: Tx, id: string) => retryStuck.one(tx, { id })
export const takeStuckOperation = (tx: Tx, id: string) => takeStuck.one(tx, { id })
export const pruneOperations = (db: Queryable, most: number) => prune.run(db, { most })

/** What the API shows of an operation. */
export const operationView = (row: OperationRow): Operation => ({
  operation_id: row.id,
  state: row.state,
  metadata: {
    operation_name: row.name,
    id: row.resource_id,
    type: row.resource_type,
    request: row.request,
  },
  result: row.result,
  started_at: time(row.started_at),
  completed_at: time(row.completed_at),
})
