import { uuid } from '../../domain/ids.ts'
import type { Database, Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'
import type { EventRow } from './events.ts'

export interface DeliveryRow {
  id: string
  seq: number
  webhook_id: string
  event_id: string
  event_type: string
  state: 'pending' | 'delivered' | 'failed'
  attempts: number
  response_status: number
  error: string
  next_attempt_at: Date | null
  created_at: Date
  completed_at: Date | null
}

const lockCursor = statement<{ position: number }>(
  'webhook_cursor_lock',
  'SELECT position FROM webhook_cursor FOR UPDATE SKIP LOCKED',
)

// Before the oldest webhook was made there is nothing to deliver; without webhooks there is nothing at all.
const oldest = statement<{ since: number | null }>(
  'webhook_oldest',
  'SELECT min(since_position) AS since FROM webhooks',
)

// The number stands in the text: without it the planner prepares for a tenth of all events, and reads every webhook.
const fanOutBatch = 500

// A test goes to the one webhook that it is about, by itself.
const fresh = statement<{ position: number; event_id: string; webhook_id: string | null }, { after: number }>(
  'webhook_fresh_events',
  `SELECT e.position, e.id AS event_id, w.id AS webhook_id
   FROM (SELECT id, position, project_id, type FROM events WHERE position > :after ORDER BY position LIMIT ${fanOutBatch}) e
   LEFT JOIN webhooks w ON w.project_id = e.project_id AND e.position > w.since_position AND e.type <> 'webhook.test'
     AND (w.event_types = '{}' OR e.type = ANY (w.event_types)
          OR EXISTS (SELECT FROM unnest(w.event_types) t WHERE t LIKE '%*' AND starts_with(e.type, left(t, -1))))
   ORDER BY e.position`,
)

const insert = statement<never, { ids: string[]; webhookIds: string[]; eventIds: string[] }>(
  'webhook_deliveries_insert',
  `INSERT INTO webhook_deliveries (id, webhook_id, event_id, event_type, resource_id, next_attempt_at)
   SELECT n.id, w.id, e.id, e.type, e.resource_id, CASE WHEN w.state = 'active' THEN slipway_now() END
   FROM unnest(:ids::uuid[], :webhookIds::uuid[], :eventIds::uuid[]) WITH ORDINALITY
     n (id, webhook_id, event_id, ordinal)
   JOIN webhooks w ON w.id = n.webhook_id JOIN events e ON e.id = n.event_id
   ORDER BY n.ordinal
   ON CONFLICT DO NOTHING`,
)

const moveCursor = statement<never, { position: number }>(
  'webhook_cursor_move',
  'UPDATE webhook_cursor SET position = :position WHERE position < :position',
)

const insertDirect = statement<DeliveryRow, { id: string; webhookId: string; eventId: string }>(
  'webhook_delivery_insert_direct',
  `INSERT INTO webhook_deliveries (id, webhook_id, event_id, event_type, resource_id, is_direct, next_attempt_at)
   SELECT :id, :webhookId, e.id, e.type, e.resource_id, true, slipway_now()
   FROM events e WHERE e.id = :eventId RETURNING *`,
)

export interface ClaimedDelivery {
  delivery: DeliveryRow
  url: string
  event: EventRow
  /** The world's time by the database: receivers compare it with their own, and this process's may be off. */
  claimedAt: Date
}

interface ClaimLimits {
  busyWebhookIds: string[]
  eachWebhook: number
  most: number
  leaseMs: number
}

// What a suspended organization misses waits for its release.
// It claims the earliest of each resource alone, so that order holds, and a few of each webhook, so that a slow one
// keeps nobody out.
// Counting the attempt at the claim makes it the fence: a worker that lost its lease writes nothing.
const claim = statement<
  DeliveryRow & {
    url: string
    event: Omit<EventRow, 'created_at'>
    event_created_at: Date
    claimed_at: Date
  },
  ClaimLimits
>(
  'webhook_deliveries_claim',
  `WITH due AS (
     SELECT d.id, row_number() OVER (PARTITION BY d.webhook_id ORDER BY d.seq) AS n
     FROM (SELECT * FROM webhook_deliveries d
           WHERE d.state = 'pending' AND d.next_attempt_at <= slipway_now()
             AND (d.lease_until IS NULL OR d.lease_until <= slipway_now())
             AND d.webhook_id <> ALL (:busyWebhookIds::uuid[])
             AND NOT EXISTS (
               SELECT FROM webhooks w JOIN projects p ON p.id = w.project_id JOIN organizations o ON o.id = p.organization_id
               WHERE w.id = d.webhook_id AND o.suspended_at IS NOT NULL)
             AND (d.is_direct OR NOT EXISTS (
               SELECT FROM webhook_deliveries b WHERE b.webhook_id = d.webhook_id AND b.resource_id = d.resource_id
                 AND b.state = 'pending' AND NOT b.is_direct AND b.seq < d.seq))
           ORDER BY d.next_attempt_at LIMIT 200) d),
   mine AS (
     SELECT d.id FROM webhook_deliveries d JOIN due ON due.id = d.id AND due.n <= :eachWebhook
     WHERE d.state = 'pending' AND (d.lease_until IS NULL OR d.lease_until <= slipway_now())
     ORDER BY d.seq LIMIT :most FOR UPDATE OF d SKIP LOCKED)
   UPDATE webhook_deliveries d
   SET attempts = attempts + 1, lease_until = slipway_now() + :leaseMs * interval '1 millisecond'
   FROM mine, webhooks w, events e
   WHERE d.id = mine.id AND w.id = d.webhook_id AND e.id = d.event_id AND e.position IS NOT NULL
   RETURNING d.*, w.url, to_jsonb(e) AS event, e.created_at AS event_created_at,
             statement_timestamp() AS claimed_at`,
)

const succeed = statement<never, { id: string; attempt: number; status: number }>(
  'webhook_delivery_succeed',
  `WITH done AS (
     UPDATE webhook_deliveries SET state = 'delivered', completed_at = slipway_now(), next_attempt_at = NULL,
            lease_until = NULL, response_status = :status, error = ''
     WHERE id = :id AND attempts = :attempt AND state = 'pending' RETURNING webhook_id)
   UPDATE webhooks w SET failing_since = NULL FROM done WHERE w.id = done.webhook_id AND w.failing_since IS NOT NULL`,
)

// A delivery is given up once its time is over; a pause of null seconds means that it has no attempts left.
const fail = statement<
  { webhook_id: string; state: 'pending' | 'failed' },
  { id: string; attempt: number; status: number; error: string; pauseS: number | null }
>(
  'webhook_delivery_fail',
  `WITH w AS (
     UPDATE webhooks w SET failing_since = coalesce(w.failing_since, slipway_now())
     FROM webhook_deliveries d
     WHERE d.id = :id AND d.attempts = :attempt AND d.state = 'pending' AND w.id = d.webhook_id
     RETURNING w.id, w.state)
   UPDATE webhook_deliveries d
   SET response_status = :status, error = :error, lease_until = NULL,
       state = CASE WHEN :pauseS::float8 IS NULL THEN 'failed' ELSE 'pending' END,
       completed_at = CASE WHEN :pauseS::float8 IS NULL THEN slipway_now() END,
       next_attempt_at = CASE WHEN w.state = 'active' THEN slipway_now() + :pauseS * interval '1 second' END
   FROM w WHERE d.id = :id AND d.attempts = :attempt AND d.state = 'pending'
   RETURNING d.webhook_id, d.state`,
)

const list = statement<DeliveryRow, { webhookId: string; beforeSeq: number | null; limit: number }>(
  'webhook_delivery_list',
  `SELECT * FROM webhook_deliveries WHERE webhook_id = :webhookId AND seq < coalesce(:beforeSeq::bigint, 9223372036854775807)
   ORDER BY seq DESC LIMIT :limit`,
)

const find = statement<DeliveryRow, { webhookId: string; id: string }>(
  'webhook_delivery_find',
  'SELECT * FROM webhook_deliveries WHERE webhook_id = :webhookId AND id = :id',
)

/** Returns where events begin to matter to a webhook; null while there is none. */
export const firstWantedPosition = async (db: Queryable): Promise<number | null> =>
  (await oldest.one(db))?.since ?? null

/**
 * Makes the deliveries of the next events; returns whether there may be more. One process does so at a time, and the
 * cursor moves in the transaction that makes them: no event is left out or taken twice.
 */
export function fanOutEvents(database: Database, since: number): Promise<boolean> {
  return database.transaction(async (tx) => {
    const cursor = await lockCursor.one(tx)
    if (!cursor) return false
    const rows = await fresh.all(tx, { after: Math.max(cursor.position, since) })
    const wanted = rows.filter(({ webhook_id }) => webhook_id !== null)
    if (wanted.length > 0)
      await insert.run(tx, {
        ids: wanted.map(() => uuid()),
        webhookIds: wanted.map(({ webhook_id }) => webhook_id!),
        eventIds: wanted.map(({ event_id }) => event_id),
      })
    const last = rows.at(-1)
    if (last) await moveCursor.run(tx, { position: last.position })
    return rows.length >= fanOutBatch
  })
}

export async function claimDeliveries(db: Queryable, limits: ClaimLimits): Promise<ClaimedDelivery[]> {
  const rows = await claim.all(db, limits)
  return rows.map(({ url, event, event_created_at, claimed_at, ...delivery }) => ({
    delivery,
    url,
    event: { ...event, created_at: event_created_at },
    claimedAt: claimed_at,
  }))
}

export const markDelivered = (db: Queryable, id: string, attempt: number, status: number) =>
  succeed.run(db, { id, attempt, status })

/** Returns undefined when another worker has taken it over. */
export const markAttemptFailed = (
  tx: Tx,
  id: string,
  attempt: number,
  outcome: { status: number; error: string; pauseS: number | null },
) => fail.one(tx, { ...outcome, id, attempt })

export const insertDirectDelivery = async (
  tx: Tx,
  webhookId: string,
  eventId: string,
): Promise<DeliveryRow> => (await insertDirect.one(tx, { id: uuid(), webhookId, eventId }))!
export const listDeliveries = (db: Queryable, webhookId: string, beforeSeq: number | null, limit: number) =>
  list.all(db, { webhookId, beforeSeq, limit })
export const findDelivery = (db: Queryable, webhookId: string, id: string) => find.one(db, { webhookId, id })
