import type { EventType, OperationName, OperationResourceType } from '@slipway/contract'
import { hideScripts } from '../../domain/guest/scripts.ts'
import { uuid } from '../../domain/ids.ts'
import { isAssertionFailure, type Tx } from '../../postgres/database.ts'
import { jsonTextOf } from '../../postgres/json.ts'
import { statement } from '../../postgres/statement.ts'
import { LostLease, type OperationRow, type StepEntry } from './operation-row.ts'
import { operationRecord } from './operation-view.ts'
import { billing, vmRecord } from './vm-view.ts'

export interface NewOperation {
  id: string
  projectId: string
  kind: string
  name: OperationName
  resourceType: OperationResourceType
  resourceId: string
  location: string
  generation: number
  request: unknown
  scratch: Record<string, unknown>
  actor: string
  requestId: string
  /** Only the start event contains the address; later events have no client. */
  clientAddress: string
  /** The name of the first step, if the admission itself has done this step. */
  admittedStep: string | null
  /** The start event. */
  event: { type: EventType; data: Record<string, unknown> }
  /** The service's time, if it is already known. */
  startedAt?: Date
  /** The lease of the worker that starts the operation after the commit. */
  lease?: { token: string; ms: number } | undefined
}

const insert = statement<OperationRow & { now: Date }, { operations: string }>(
  'operations_insert',
  `WITH given AS MATERIALIZED (
     SELECT *, (SELECT now FROM moment) FROM json_to_recordset(:operations::json) AS g (
       id uuid, "projectId" uuid, kind text, name text, "resourceType" text, "resourceId" uuid, location text,
       generation bigint, request text, "listedRequest" text, scratch jsonb, actor text, "requestId" text, "clientAddress" text,
       "admittedStep" text, "startedAt" timestamptz, "leaseToken" uuid, "leaseMs" integer, "eventId" uuid, "eventType" text, "eventData" jsonb)
   ), begun AS (
     INSERT INTO operations
       (id, project_id, kind, name, resource_type, resource_id, location, generation, request, listed_request, scratch, actor,
        request_id, started_at, step, step_log)
     SELECT g.id, g."projectId", g.kind, g.name, g."resourceType", g."resourceId", g.location, g.generation,
            g.request::json, g."listedRequest"::json, g.scratch, g.actor, g."requestId", coalesce(g."startedAt", g.now),
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
   ), emitted AS (
     INSERT INTO events_pending (id, project_id, organization_id, type, resource_type, resource_id, actor, request_id,
                         client_address, data, created_at)
     SELECT g."eventId", b.project_id, (SELECT organization_id FROM projects WHERE projects.id = b.project_id),
            g."eventType", b.resource_type, b.resource_id, b.actor, b.request_id, g."clientAddress",
            jsonb_build_object('operation_id', b.id, 'operation_name', b.name) || g."eventData", g.now
     FROM begun b JOIN given g ON g.id = b.id
   )
   SELECT *, (SELECT now FROM given LIMIT 1) AS now FROM begun`,
)

// Ends the operations with valid leases, writes their events, and makes operations that wait for them due:
// the deletion of the resource, and the operation of the group that it is a member of. With `mustAll`, the
// statement fails if any lease is no longer valid.
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
   ), dequeued AS (
     DELETE FROM operation_queue q USING held WHERE q.operation_id = held.operation_id
   ), ended AS (
     UPDATE operations o SET state = g.state, result = (${result})::json, step_log = coalesce(g."stepLog", o.step_log),
            completed_at = g.now, is_stuck = false
     FROM held JOIN given g ON g.id = held.operation_id WHERE o.id = held.operation_id
     RETURNING o.*, g."eventId" AS event_id
   ), emitted AS (
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
     UPDATE operation_queue q SET run_at = e.completed_at
     FROM (SELECT id, resource_id, completed_at FROM ended
           UNION ALL SELECT id, (scratch ->> 'memberOf')::uuid, completed_at FROM ended WHERE scratch ? 'memberOf') e
     WHERE q.resource_id = e.resource_id AND q.operation_id <> e.id AND q.lease_token IS NULL
     RETURNING q.operation_id
   ), complete AS MATERIALIZED (
     SELECT assert_or_abort(NOT :mustAll OR (SELECT count(*) FROM ended) = (SELECT count(*) FROM given), 'a lease is lost')
   )
   SELECT o.id, (SELECT count(*) FROM woken) AS woken, ${operationRecord} AS record
   FROM complete LEFT JOIN ended o ON true`,
  )
const endWithResult = endWith('operations_end', 'g.result')
const endWithVm = endWith(
  'operations_end_with_vm',
  `SELECT ${vmRecord} FROM vms v ${billing} WHERE v.id = o.resource_id`,
)

/** Returns the request as JSON, with digests in place of its scripts; undefined if it has no scripts. */
function listedRequestOf(request: unknown): string | undefined {
  const listed = hideScripts(request as object)
  return listed === request ? undefined : JSON.stringify(listed)
}

/** Writes operations, each with its start event. Returns them in the same order. */
export async function insertOperations(
  tx: Tx,
  operations: NewOperation[],
): Promise<(OperationRow & { now: Date })[]> {
  tx.signal('events')
  if (operations.some(({ lease }) => !lease)) tx.signal('operations')
  const given = operations.map(({ event, lease, ...operation }) => ({
    ...operation,
    // The request is sent as text, because jsonb rejects some valid JSON, such as an unpaired surrogate.
    request: JSON.stringify(operation.request),
    listedRequest: listedRequestOf(operation.request),
    leaseToken: lease?.token,
    leaseMs: lease?.ms,
    eventId: uuid(),
    eventType: event.type,
    eventData: event.data,
  }))
  const rows = await insert.all(tx, { operations: JSON.stringify(given) })
  const byId = new Map(rows.map((row) => [row.id, row]))
  return operations.map(({ id }) => byId.get(id)!)
}

/** A placeholder result: the statement that ends the operation replaces it with the record of the operation's VM. */
export const vmRecordAsResult = Symbol('record of the VM')

export interface OperationEnd {
  id: string
  /** The token of the worker's lease; null if no worker holds the operation. */
  token: string | null
  state: 'SUCCEEDED' | 'FAILED'
  result: unknown
  /** Null leaves the stored log unchanged. */
  stepLog: StepEntry[] | null
}

/** Ends operations, except those whose lease is lost, and cancelled operations whose result is not `cancelled`. */
export const endOperations = (tx: Tx, endings: OperationEnd[]): Promise<void> =>
  writeEndings(tx, endings, false)

/**
 * Ends an operation with a statement that is sent together with the commit. If it cannot be ended, the
 * transaction fails with `LostLease`.
 */
export const endOperation = (tx: Tx, ending: OperationEnd): Promise<void> =>
  tx.enqueue(writeAllEndings, ending)

const writeAllEndings = (tx: Tx, endings: OperationEnd[]): Promise<void> =>
  writeEndings(tx, endings, true).catch((error) => {
    throw isAssertionFailure(error) ? new LostLease() : error
  })

async function writeEndings(tx: Tx, endings: OperationEnd[], mustAll: boolean): Promise<void> {
  const ofVms = endings.filter(({ result }) => result === vmRecordAsResult)
  const others = endings.filter(({ result }) => result !== vmRecordAsResult)
  await Promise.all([
    writeEndingsBy(endWithVm, tx, ofVms, mustAll),
    writeEndingsBy(endWithResult, tx, others, mustAll),
  ])
}

/** Signals the operations that ended, and wakes the workers if another operation is due. */
async function writeEndingsBy(
  end: ReturnType<typeof endWith>,
  tx: Tx,
  endings: OperationEnd[],
  mustAll: boolean,
): Promise<void> {
  if (endings.length === 0) return
  const given = endings.map(({ result, ...ending }) => ({
    ...ending,
    result: result === null || result === vmRecordAsResult ? null : jsonTextOf(result),
    isCancelled: (result as { code?: string } | null)?.code === 'cancelled',
    eventId: uuid(),
  }))
  const rows = await end.all(tx, { endings: JSON.stringify(given), mustAll })
  for (const { id, record } of rows)
    if (id !== null) {
      tx.signal('ended', id, record)
      tx.signal('events')
    }
  if (rows.some(({ woken }) => woken > 0)) tx.signal('operations')
}
