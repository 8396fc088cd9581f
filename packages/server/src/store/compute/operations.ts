import type { EventType, Operation, OperationName, OperationState, OperationType } from '@slipway/contract'
import { uuid } from '../../domain/ids.ts'
import { isUnmet, type Queryable, type Tx } from '../database.ts'
import { gathered, gatheredChange } from '../gathered.ts'
import { jsonTextOf } from '../json.ts'
import { keyedStatement, withSharedReads } from '../keyed.ts'
import { filteredStatement, ifGiven, isBefore, statement } from '../statement.ts'
import { time } from '../time.ts'
import { type BegunOperation, LostLease, type OperationRow, type StepEntry } from './operation-row.ts'
import { operationRecord } from './operation-view.ts'
import { billing, vmRecord } from './vm-view.ts'

export type { BegunOperation, OperationFailure, OperationRow, StepEntry } from './operation-row.ts'

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
  /** What its first step begins with, where it begins at once. */
  readAhead?: (db: Queryable) => Promise<unknown>
}

const insert = statement<OperationRow & { now: Date }, { operations: string }>(
  'operations_insert',
  `WITH given AS MATERIALIZED (
     SELECT *, (SELECT now FROM moment) FROM json_to_recordset(:operations::json) AS g (
       id uuid, "projectId" uuid, kind text, name text, "resourceType" text, "resourceId" uuid, location text,
       generation bigint, request text, scratch jsonb, actor text, "requestId" text, "clientAddress" text,
       "admittedStep" text, "startedAt" timestamptz, "leaseToken" uuid, "leaseMs" integer, "eventId" uuid, "eventType" text, "eventData" jsonb)
   ), begun AS (
     INSERT INTO operations
       (id, project_id, kind, name, resource_type, resource_id, location, generation, request, scratch, actor, request_id,
        started_at, step, step_log)
     SELECT g.id, g."projectId", g.kind, g.name, g."resourceType", g."resourceId", g.location, g.generation,
            g.request::json, g.scratch, g.actor, g."requestId", coalesce(g."startedAt", g.now),
            CASE WHEN g."admittedStep" IS NULL THEN 0 ELSE 1 END,
            CASE WHEN g."admittedStep" IS NULL THEN '[]'
                 ELSE jsonb_build_array(jsonb_build_object(
                   'name', g."admittedStep", 'state', 'done', 'started_at', t, 'completed_at', t)) END
     FROM given g, to_char(g.now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') t RETURNING *
   ), queued AS (
     INSERT INTO operation_queue (operation_id, project_id, resource_id, is_deletion, location, run_at, lease_token)
     SELECT g.id, g."projectId", g."resourceId", g.name = 'DELETE', g.location,
            g.now + coalesce(g."leaseMs", 0) * interval '1 millisecond', g."leaseToken"
     FROM given g
   ), told AS (
     INSERT INTO events_pending (id, project_id, organization_id, type, resource_type, resource_id, actor, request_id,
                         client_address, data, created_at)
     SELECT g."eventId", b.project_id, (SELECT organization_id FROM projects WHERE projects.id = b.project_id),
            g."eventType", b.resource_type, b.resource_id, b.actor, b.request_id, g."clientAddress",
            jsonb_build_object('operation_id', b.id, 'operation_name', b.name) || g."eventData", g.now
     FROM begun b JOIN given g ON g.id = b.id
   )
   SELECT *, (SELECT now FROM given LIMIT 1) AS now FROM begun`,
)

// One statement ends the operations whose leases stand, tells of it, and wakes deletions that wait for them. Where all have
// to end, it fails if a lease does not stand.
const endWith = (name: string, result: string) =>
  statement<{ id: string | null; woken: number; record: string }, { endings: string; mustAll: boolean }>(
    name,
    `WITH given AS MATERIALIZED (
     SELECT *, (SELECT now FROM moment) FROM json_to_recordset(:endings::json) AS g (
       id uuid, token uuid, state text, result text, "stepLog" jsonb, "isCancelled" boolean, "eventId" uuid)
   ), held AS MATERIALIZED (
     SELECT q.operation_id FROM given g JOIN operation_queue q
       ON q.operation_id = g.id AND q.lease_token IS NOT DISTINCT FROM g.token AND (NOT q.is_cancelled OR g."isCancelled")
     WHERE q.operation_id = ANY (ARRAY(SELECT id FROM given))
     ORDER BY q.operation_id FOR UPDATE OF q
   ), left_queue AS (
     DELETE FROM operation_queue q USING held WHERE q.operation_id = held.operation_id
   ), ended AS (
     UPDATE operations o SET state = g.state, result = (${result})::json, step_log = coalesce(g."stepLog", o.step_log),
            completed_at = g.now, is_stuck = false
     FROM held JOIN given g ON g.id = held.operation_id WHERE o.id = held.operation_id
     RETURNING o.*, g."eventId" AS event_id
   ), told AS (
     INSERT INTO events_pending (id, project_id, organization_id, type, resource_type, resource_id, actor, request_id, data,
                                 created_at)
     SELECT e.event_id, e.project_id, (SELECT organization_id FROM projects WHERE projects.id = e.project_id),
            CASE e.state WHEN 'SUCCEEDED' THEN 'operation.succeeded' ELSE 'operation.failed' END,
            e.resource_type, e.resource_id, e.actor, e.request_id,
            jsonb_build_object('operation_id', e.id, 'operation_name', e.name)
              || CASE e.state WHEN 'FAILED' THEN jsonb_build_object('error', e.result) ELSE '{}' END,
            e.completed_at
     FROM ended e
   ), woken AS (
     UPDATE operation_queue q SET run_at = e.completed_at FROM ended e
     WHERE q.resource_id = e.resource_id AND q.operation_id <> e.id AND q.lease_token IS NULL
     RETURNING q.operation_id
   ), complete AS MATERIALIZED (
     SELECT insist(NOT :mustAll OR (SELECT count(*) FROM ended) = (SELECT count(*) FROM given), 'a lease is lost')
   )
   SELECT o.id, (SELECT count(*) FROM woken) AS woken, ${operationRecord} AS record
   FROM complete LEFT JOIN ended o ON true`,
  )
const end = endWith('operations_end', 'g.result')
const endWithVm = endWith(
  'operations_end_with_vm',
  `SELECT ${vmRecord} FROM vms v ${billing} WHERE v.id = o.resource_id`,
)

const byId = statement<OperationRow, { projectId: string; id: string; type: string | null }>(
  'operation_by_id',
  `SELECT * FROM operations
   WHERE project_id = :projectId AND id = :id AND (:type::text IS NULL OR resource_type = :type)`,
)

// Unfinished ones stand in the queue; failed ones are few among all that ever were, and have indexes of their own.
const isInState = (unfinished: string) =>
  ({
    IN_PROGRESS: `id IN (${unfinished})`,
    SUCCEEDED: `state = 'SUCCEEDED'`,
    FAILED: `state = 'FAILED'`,
  }) satisfies Record<OperationState, string>

const list = filteredStatement<{ id: string; record: string }, OperationFilter>(
  'operation_list',
  (given) => `SELECT o.id, ${operationRecord} AS record FROM operations o
   WHERE project_id = :projectId AND ${isBefore('id')}
     AND ${ifGiven(':type::text', 'resource_type = :type')} ${given}
   ORDER BY id DESC LIMIT :limit`,
  {
    resourceId: 'resource_id = :resourceId',
    state: isInState('SELECT operation_id FROM operation_queue WHERE project_id = :projectId'),
  },
)

// Each is looked up by itself, also while PostgreSQL knows nothing of the tables and would read them to the end.
const unfinished = statement<OperationRow, { resourceIds: string[] }>(
  'operation_unfinished',
  `SELECT o.* FROM operation_queue q, LATERAL (SELECT * FROM operations WHERE id = q.operation_id LIMIT 1) o
   WHERE q.resource_id = ANY (:resourceIds::uuid[]) ORDER BY q.resource_id, q.is_deletion DESC FOR UPDATE OF q`,
)

// Beside a deletion there is at most one other.
const other = keyedStatement<object, { resourceId: string; id: string }>(
  'operation_other_unfinished',
  `SELECT w.resource_id AS "resourceId", w.id FROM unnest(:resourceId::uuid[], :id::uuid[]) AS w (resource_id, id)
   JOIN operation_queue q ON q.resource_id = w.resource_id AND q.operation_id <> w.id`,
)

// What a worker holds looks by itself; what failed keeps its pause.
const hasten = statement<never, { resourceId: string }>(
  'operation_hasten',
  `UPDATE operation_queue q SET run_at = slipway_now() FROM operations o
   WHERE q.resource_id = :resourceId AND q.lease_token IS NULL AND q.run_at > slipway_now()
     AND o.id = q.operation_id AND o.attempts = 0`,
)

const cancel = statement<never, { id: string }>(
  'operation_cancel',
  'UPDATE operation_queue SET is_cancelled = true WHERE operation_id = :id',
)

const counts = statement<{ in_progress: number; stuck: number }>(
  'operation_counts',
  `SELECT (SELECT count(*) FROM operation_queue) AS in_progress,
          (SELECT count(*) FROM operations WHERE is_stuck) AS stuck`,
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
  {
    isStuck: { true: 'is_stuck', false: 'NOT is_stuck' },
    state: isInState('SELECT operation_id FROM operation_queue'),
  },
)

const retryStuck = statement<OperationRow, { id: string }>(
  'operation_retry_stuck',
  `WITH due AS (UPDATE operation_queue SET run_at = slipway_now() WHERE operation_id = :id RETURNING operation_id)
   UPDATE operations SET is_stuck = false, attempts = 0 FROM due WHERE id = due.operation_id AND is_stuck RETURNING operations.*`,
)

// Whoever works on it at this moment finds its lease gone.
const takeStuck = statement<OperationRow, { id: string }>(
  'operation_take_stuck',
  `WITH taken AS (UPDATE operation_queue SET lease_token = NULL WHERE operation_id = :id RETURNING operation_id)
   SELECT o.* FROM operations o JOIN taken ON o.id = taken.operation_id WHERE o.is_stuck FOR UPDATE OF o`,
)

const prune = statement<never, { most: number }>(
  'operation_prune',
  `DELETE FROM operations WHERE id IN (
     SELECT id FROM operations WHERE completed_at < slipway_now() - interval '90 days'
     ORDER BY completed_at LIMIT :most)`,
)

/**
 * Writes the operation with the event of its beginning. If the worker of this process has a slot for it, it is born with
 * that worker's lease and begins after the commit; otherwise a runner is woken.
 */
export const insertOperation = gatheredChange((tx: Tx, operations: NewOperation[]) =>
  writeOperations(
    tx,
    operations.map((operation) => ({ operation })),
  ),
)

/** The same where the service's time is known: it is written together with the commit. */
export async function beginOperation(
  tx: Tx,
  operation: NewOperation,
  startedAt: Date,
): Promise<BegunOperation> {
  tx.signal('events')
  await tx.enqueue(writeOperations, { operation, startedAt })
  const { id, name, resourceType, resourceId, request } = operation
  return {
    ...{ id, name, resource_type: resourceType, resource_id: resourceId },
    ...{ request: request as OperationRow['request'], state: 'IN_PROGRESS', result: null },
    ...{ started_at: startedAt, completed_at: null },
  }
}

/** Returns them in this order. */
async function writeOperations(
  tx: Tx,
  beginnings: { operation: NewOperation; startedAt?: Date }[],
): Promise<OperationRow[]> {
  const slots = beginnings.map(({ operation }) => tx.reserveSlot(operation.projectId, operation.location))
  const given = beginnings.map(({ operation: { event, readAhead, ...operation }, startedAt }, at) => ({
    ...operation,
    // As text it may hold what only JSON can say, such as half a surrogate pair.
    request: JSON.stringify(operation.request),
    startedAt,
    leaseToken: slots[at]?.token,
    leaseMs: slots[at]?.leaseMs,
    eventId: uuid(),
    eventType: event.type,
    eventData: event.data,
  }))
  if (slots.includes(undefined)) tx.signal('operations')
  tx.signal('events')
  const ahead = readAll(
    tx,
    beginnings.map(({ operation }, at) => (slots[at] ? operation.readAhead : undefined)),
  )
  const rows = await insert.all(tx, { operations: JSON.stringify(given) })
  const byId = new Map(rows.map((row) => [row.id, row]))
  const inOrder = beginnings.map(({ operation }) => byId.get(operation.id)!)
  for (const [at, row] of inOrder.entries())
    slots[at]?.fill({ ...row, was_held: false, is_cancelled: false, ...ahead[at] })
  return inOrder
}

/** Stands for the record of an operation's VM as it is at the end: nobody has to read it first. */
export const recordOfVm = Symbol('record of the VM')

/** Those who read alike share a statement. */
function readAll(tx: Tx, reads: NewOperation['readAhead'][]): { ahead?: Promise<unknown> }[] {
  if (!reads.some((read) => read)) return reads.map(() => ({}))
  const all = tx.readAhead((db) => {
    const shared = withSharedReads(db)
    return Promise.all(reads.map((read) => read?.(shared)))
  })
  return reads.map((read, at) => (read ? { ahead: all.then((found) => found?.[at]) } : {}))
}

export interface Ending {
  id: string
  /** What its worker holds it by; null: nobody does. */
  token: string | null
  state: 'SUCCEEDED' | 'FAILED'
  result: unknown
  /** Null: as it was last written. */
  stepLog: StepEntry[] | null
}

/**
 * Ends them and wakes, after the commit, whoever waits for them. Returns the ids of those that it ended: not of one whose
 * lease is lost, nor of one that was cancelled and may only end so.
 */
export const endOperations = (tx: Tx, endings: Ending[]): Promise<Set<string>> =>
  writeEndings(tx, endings, false)

/** The same together with the commit: if it cannot be ended, the transaction fails with `LostLease`. */
export const endOperation = (tx: Tx, ending: Ending): Promise<void> => tx.enqueue(writeAllEndings, ending)

async function writeAllEndings(tx: Tx, endings: Ending[]): Promise<void> {
  await writeEndings(tx, endings, true).catch((error) => {
    throw isUnmet(error) ? new LostLease() : error
  })
}

async function writeEndings(tx: Tx, endings: Ending[], mustAll: boolean): Promise<Set<string>> {
  const withVm = endings.filter(({ result }) => result === recordOfVm)
  const others = endings.filter(({ result }) => result !== recordOfVm)
  const ended = await Promise.all([
    writeAlike(tx, endWithVm, withVm, mustAll),
    writeAlike(tx, end, others, mustAll),
  ])
  return new Set(ended.flat())
}

/** Returns the ids of those that it ended. */
async function writeAlike(
  tx: Tx,
  end: ReturnType<typeof endWith>,
  endings: Ending[],
  mustAll: boolean,
): Promise<string[]> {
  if (endings.length === 0) return []
  const given = endings.map(({ result, ...ending }) => ({
    ...ending,
    result: result === null || result === recordOfVm ? null : jsonTextOf(result),
    isCancelled: (result as { code?: string } | null)?.code === 'cancelled',
    eventId: uuid(),
  }))
  const rows = await end.all(tx, { endings: JSON.stringify(given), mustAll })
  const ended: string[] = []
  for (const { id, record } of rows)
    if (id !== null) {
      ended.push(id)
      tx.signal('ended', id, record)
    }
  if (ended.length > 0) tx.signal('events')
  if (rows.some(({ woken }) => woken > 0)) tx.signal('operations')
  return ended
}

export const findOperation = (db: Queryable, projectId: string, id: string, type: OperationType | null) =>
  byId.one(db, { projectId, id, type })

export interface OperationFilter {
  projectId: string
  beforeId: string | null
  type: OperationType | null
  state: OperationState | null
  resourceId: string | null
  limit: number
}

export const listOperations = (db: Queryable, f: OperationFilter) => list.all(db, f)

/** Locks those of the resource; its deletion comes first. */
export const findUnfinishedOperations = (db: Queryable, resourceId: string) =>
  unfinished.all(db, { resourceIds: [resourceId] })

/** The same for the requests of a batch. */
export const lockUnfinishedOperations = gathered(async (tx: Tx, resourceIds: string[]) => {
  const operations = await unfinished.all(tx, { resourceIds })
  return resourceIds.map((id) => operations.filter(({ resource_id }) => resource_id === id))
})
/** Whether another operation on the same resource is unfinished. */
export const hasOtherUnfinished = async (
  db: Queryable,
  { id, resource_id }: Pick<OperationRow, 'id' | 'resource_id'>,
): Promise<boolean> => (await other.one(db, { resourceId: resource_id, id })) !== undefined
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

/** What clients see of an operation that is at hand; `operationRecord` says the same in SQL, for those that are read. */
export const operationView = (row: BegunOperation): Operation => ({
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
