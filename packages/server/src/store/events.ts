import { uuid } from '../domain/ids.ts'
import { type Queryable, statement, type Tx } from './database.ts'

export interface NewEvent {
  type: string
  resourceType: string
  resourceId: string
  projectId?: string | null
  organizationId?: string | null
  actor: string
  requestId: string
  data?: Record<string, unknown>
}

export interface EventRow {
  seq: number
  id: string
  position: number
  type: string
  resource_type: string
  resource_id: string
  actor: string
  request_id: string
  data: Record<string, unknown>
  created_at: Date
}

const insert = statement<
  never,
  [string, string | null, string | null, string, string, string, string, string, string]
>(
  'event_insert',
  `INSERT INTO events (id, organization_id, project_id, type, resource_type, resource_id, actor, request_id, data)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
)

// One stamper at a time; positions become visible with its commit, in order.
const stamp = statement<{ count: number }, [number]>(
  'event_stamp',
  `WITH free AS (SELECT pg_try_advisory_xact_lock(7102002) AS is_mine),
        late AS MATERIALIZED (SELECT seq FROM events, free WHERE position IS NULL AND is_mine ORDER BY seq LIMIT $1),
        numbered AS (SELECT seq, row_number() OVER (ORDER BY seq) AS n FROM late),
        counter AS (UPDATE event_counter SET last_position = last_position + (SELECT count(*) FROM late)
                    WHERE EXISTS (SELECT FROM late)
                    RETURNING last_position - (SELECT count(*) FROM late) AS base),
        stamped AS (UPDATE events e SET position = base + n FROM numbered, counter WHERE e.seq = numbered.seq RETURNING 1)
   SELECT count(*) AS count FROM stamped`,
)

const list = statement<
  EventRow,
  [string | null, number | null, string | null, string | null, string | null, number]
>(
  'event_list',
  `SELECT * FROM events
   WHERE position IS NOT NULL AND ($1::uuid IS NULL OR project_id = $1) AND ($2::bigint IS NULL OR position < $2)
     AND ($3::text IS NULL OR resource_id = $3) AND ($4::text IS NULL OR type = $4) AND ($5::text IS NULL OR actor = $5)
   ORDER BY position DESC LIMIT $6`,
)

/** Part of the change it tells of: same transaction. */
export async function emitEvent(tx: Tx, event: NewEvent): Promise<void> {
  await insert.run(
    tx,
    uuid(),
    event.organizationId ?? null,
    event.projectId ?? null,
    event.type,
    event.resourceType,
    event.resourceId,
    event.actor,
    event.requestId,
    JSON.stringify(event.data ?? {}),
  )
}

/** Gives positions to committed events; answers how many. Zero also when another process is at it. */
export async function stampEvents(db: Queryable, most = 1000): Promise<number> {
  return (await stamp.one(db, most))?.count ?? 0
}

export interface EventFilter {
  projectId: string | null
  beforePosition: number | null
  resourceId: string | null
  type: string | null
  actor: string | null
  limit: number
}

export function listEvents(db: Queryable, filter: EventFilter): Promise<EventRow[]> {
  return list.all(
    db,
    filter.projectId,
    filter.beforePosition,
    filter.resourceId,
    filter.type,
    filter.actor,
    filter.limit,
  )
}
