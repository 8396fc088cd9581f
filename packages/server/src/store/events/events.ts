import type { EventType, OperationState } from '@slipway/contract'
import { uuid } from '../../domain/ids.ts'
import type { Database, Queryable, Tx } from '../../postgres/database.ts'
import { sharedRead } from '../../postgres/keyed.ts'
import { filteredStatement, ifGiven, statement } from '../../postgres/statement.ts'

export interface NewEvent {
  /** Set if the caller needs the id, to refer to the event. */
  id?: string
  type: EventType
  resourceType: string
  resourceId: string
  projectId?: string | null
  organizationId?: string | null
  /** `system` if no request caused it. */
  actor?: string
  requestId?: string
  clientAddress?: string
  data?: Record<string, unknown>
}

/** The caller that requested a change. The event of the change has the same fields. */
export interface Requester {
  actor: string
  requestId: string
  /** The address of the client; '' if no request caused the change. */
  clientAddress: string
  projectId: string | null
  organizationId: string | null
}

/** The caller of a request about one organization. */
export interface OrganizationRequester extends Requester {
  organizationId: string
}

/** The requester of changes that no request caused: the service itself. */
export const system: Requester = {
  actor: 'system',
  requestId: '',
  clientAddress: '',
  projectId: null,
  organizationId: null,
}

export interface EventRow {
  seq: number
  id: string
  position: number
  organization_id: string | null
  project_id: string | null
  type: string
  resource_type: string
  resource_id: string
  actor: string
  request_id: string
  client_address: string
  data: Record<string, unknown>
  created_at: Date
}

const insert = statement<never, { events: string }>(
  'events_insert',
  `INSERT INTO events_pending (id, organization_id, project_id, type, resource_type, resource_id, actor, request_id,
                               client_address, data)
   SELECT id, "organizationId", "projectId", type, "resourceType", "resourceId", actor, "requestId", "clientAddress", data
   FROM json_to_recordset(:events::json) AS g (
     id uuid, "organizationId" uuid, "projectId" uuid, type text, "resourceType" text, "resourceId" text, actor text,
     "requestId" text, "clientAddress" text, data jsonb)`,
)

const anyPending = statement<{ is_any: boolean }>(
  'event_any_pending',
  'SELECT EXISTS (SELECT FROM events_pending) AS is_any',
)
/** Shared, so that concurrent lists of events need only one query. */
const isAnyPending = sharedRead(async (db, _: null) => (await anyPending.one(db))!.is_any)

// Both lock statements record in a transaction setting whether this transaction is the stamper, so that the
// statement that stamps can be sent with them. `tryStamperLock` also checks for pending events, so that
// one round trip is enough.
const isStamper = `current_setting('slipway.is_stamper', true) = 'true'`
const tryStamperLock = statement(
  'event_stamper_try',
  `SELECT set_config('slipway.is_stamper',
                     (EXISTS (SELECT FROM events_pending) AND pg_try_advisory_xact_lock(7102002))::text, true)`,
)
const stamperLock = statement(
  'event_stamper_wait',
  `SELECT set_config('slipway.is_stamper', 'true', true) FROM pg_advisory_xact_lock(7102002)`,
)

const eventColumns = `id, organization_id, project_id, type, resource_type, resource_id, actor, request_id, client_address,
          data, created_at`

// An earlier statement took the stamper's lock, so that the snapshot of this statement includes everything that
// the previous stamper committed; otherwise the same positions would be assigned again. Events become visible
// when this transaction commits. The array makes PostgreSQL look up the events one by one, even without statistics.
const stamp = statement<never, { limit: number }>(
  'event_stamp',
  `WITH removed AS (
          DELETE FROM events_pending
          WHERE ${isStamper} AND seq = ANY (ARRAY(SELECT seq FROM events_pending ORDER BY seq LIMIT :limit)) RETURNING *),
        counter AS (UPDATE event_counter SET last_position = last_position + (SELECT count(*) FROM removed)
                    WHERE EXISTS (SELECT FROM removed)
                    RETURNING last_position - (SELECT count(*) FROM removed) AS base)
   INSERT INTO events (seq, position, ${eventColumns})
   SELECT seq, base + row_number() OVER (ORDER BY seq), ${eventColumns} FROM removed, counter ORDER BY seq`,
)

const bounds = statement<{ last_position: number; pruned_position: number }>(
  'event_bounds',
  'SELECT last_position, pruned_position FROM event_counter',
)

const after = statement<EventRow, { after: number; upTo: number; limit: number }>(
  'event_after',
  'SELECT * FROM events WHERE position > :after AND position <= :upTo ORDER BY position LIMIT :limit',
)

const ofProjectAfter = statement<EventRow, { projectId: string; after: number; upTo: number; limit: number }>(
  'event_of_project_after',
  `SELECT * FROM events WHERE project_id = :projectId AND position > :after AND position <= :upTo
   ORDER BY position LIMIT :limit`,
)

const ofOrganizationAfter = statement<
  EventRow,
  { organizationId: string; after: number; upTo: number; limit: number }
>(
  'event_of_organization_after',
  `SELECT * FROM events
   WHERE organization_id = :organizationId AND project_id IS NULL AND position > :after AND position <= :upTo
   ORDER BY position LIMIT :limit`,
)

const eventFilters = {
  organizationId: 'organization_id = :organizationId AND project_id IS NULL',
  projectId: 'project_id = :projectId',
  resourceId: 'resource_id = :resourceId',
}

const stateOfOperation = `(SELECT o.state FROM operations o WHERE o.id = nullif(data ->> 'operation_id', '')::uuid)`

/** The filters that no index serves. */
const isMatch = [
  ifGiven(':type::text', 'type = :type'),
  ifGiven(':actor::text', 'actor = :actor'),
  ifGiven(':resourceType::text', 'resource_type = :resourceType'),
  ifGiven(':resourceIds::text[]', 'resource_id = ANY (:resourceIds)'),
  ifGiven(':operationState::text', `${stateOfOperation} = :operationState`),
  ifGiven(':start::timestamptz', 'created_at >= :start'),
  ifGiven(':end::timestamptz', 'created_at < :end'),
].join(' AND ')

const list = filteredStatement<EventRow, EventFilter & PositionRange>(
  'event_list',
  (given) => `SELECT * FROM events
   WHERE position > :above AND position < coalesce(:below::bigint, 9223372036854775807)
     AND ${isMatch} ${given}
   ORDER BY position DESC LIMIT :limit`,
  eventFilters,
)

// Events become visible in the order of their positions, so no event can appear before the last one that was
// read.
const listForward = filteredStatement<EventRow, EventFilter & { above: number; below: number }>(
  'event_list_forward',
  (given) => `SELECT * FROM events
   WHERE position > :above AND position < :below
     AND ${isMatch} ${given}
   ORDER BY position LIMIT :limit`,
  eventFilters,
)

/** Writes the event in the transaction of the change that it reports, and wakes its readers after the commit. */
export async function emit(tx: Tx, event: NewEvent): Promise<void> {
  await tx.enqueue(writeEvents, event)
  tx.signal('events')
}

async function writeEvents(tx: Tx, events: NewEvent[]): Promise<void> {
  const given = events.map((event) => ({ ...system, data: {}, ...event, id: event.id ?? uuid() }))
  await insert.run(tx, { events: JSON.stringify(given) })
}

const stampBatch = 1_000

/**
 * Assigns positions to committed events and signals their readers; returns whether there may be more. If
 * another process is doing this, the call does nothing, unless `mustWait` is set: then all events that were
 * committed before the call have positions when it returns.
 */
export async function stampEvents(database: Database, mustWait = false): Promise<boolean> {
  // Only readers wait, and usually no event is pending.
  if (mustWait && !(await isAnyPending(database, null))) return false
  let stamped = 0
  await database.transaction(async (tx) => {
    const lock = mustWait ? stamperLock : tryStamperLock
    await tx.awaitAtCommit(lock.run(tx))
    const stamping = stamp.run(tx, { limit: stampBatch }).then((count) => {
      stamped = count
      if (count > 0) tx.signal('stamped')
    })
    await tx.awaitAtCommit(stamping)
  })
  const isFull = stamped === stampBatch
  return isFull && mustWait ? stampEvents(database, true) : isFull
}

/** Returns two positions: events up to `last` are all visible, and events up to `pruned` are deleted. */
export async function findEventBounds(db: Queryable): Promise<{ last: number; pruned: number }> {
  const row = (await bounds.one(db))!
  return { last: row.last_position, pruned: row.pruned_position }
}

/** The events of one project, of one organization without its projects, or all events. */
export interface EventScope {
  projectId: string | null
  organizationId: string | null
}

/** Lists the events in order. */
export function listEventsBetween(
  db: Queryable,
  { projectId, organizationId }: EventScope,
  range: { after: number; upTo: number },
  limit: number,
): Promise<EventRow[]> {
  if (projectId !== null) return ofProjectAfter.all(db, { ...range, projectId, limit })
  if (organizationId !== null) return ofOrganizationAfter.all(db, { ...range, organizationId, limit })
  return after.all(db, { ...range, limit })
}

/** A null means that the filter is not given. */
export interface EventFilter extends EventScope {
  resourceId: string | null
  resourceType: string | null
  type: string | null
  actor: string | null
  resourceIds: string[] | null
  operationState: OperationState | null
  start: Date | null
  end: Date | null
  limit: number
}

/** The positions before and after the events of a list. */
export interface PositionRange {
  above: number
  below: number | null
}

/** Lists events, newest first. */
export const listEvents = (db: Queryable, filter: EventFilter, range: PositionRange) =>
  list.all(db, { ...filter, ...range })

/** Lists events, oldest first. */
export const listEventsForward = (db: Queryable, filter: EventFilter, range: PositionRange) =>
  listForward.all(db, { ...filter, ...range, below: range.below ?? Number.MAX_SAFE_INTEGER })

// Streams use pruned_position to detect that the events they request are deleted. The oldest events are found
// with an index, so that a run with nothing to delete is cheap.
const prune = statement<{ count: number }, { limit: number }>(
  'prune_events',
  `WITH old AS MATERIALIZED (
          SELECT id, position FROM events WHERE created_at < slipway_now() - interval '90 days'
          ORDER BY created_at LIMIT :limit),
        removed AS (DELETE FROM events WHERE position IN (SELECT position FROM old)),
        deliveries AS (DELETE FROM webhook_deliveries WHERE event_id IN (SELECT id FROM old)),
        counter AS (UPDATE event_counter
                    SET pruned_position = greatest(pruned_position, (SELECT max(position) FROM old))
                    WHERE EXISTS (SELECT FROM old))
   SELECT count(*) AS count FROM old`,
)

/** Deletes at most `limit` old events, and returns the number of deleted events. */
export const pruneEvents = async (db: Queryable, limit: number): Promise<number> =>
  (await prune.one(db, { limit }))!.count
