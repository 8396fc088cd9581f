import { uuid } from '../../domain/ids.ts'
import { type Database, type Queryable, statement, type Tx } from '../database.ts'
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

// A test goes to the one webhook that it is about, by itself.
const fresh = statement<{ position: number; event_id: string; webhook_id: string | null }, [number, number]>(
  'webhook_fresh_events',
  `SELECT e.position, e.id AS event_id, w.id AS webhook_id
   FROM (SELECT id, position, project_id, type FROM events WHERE position > $1 ORDER BY position LIMIT $2) e
   LEFT JOIN webhooks w ON w.project_id = e.project_id AND e.position > w.since_position AND e.type <> 'webhook.test'
     AND (w.event_types = '{}' OR e.type = ANY (w.event_types)
          OR EXISTS (SELECT FROM unnest(w.event_types) t WHERE t LIKE '%*' AND starts_with(e.type, left(t, -1))))
   ORDER BY e.position`,
)

const insert = statement<never, [string[], string[], string[]]>(
  'webhook_deliveries_insert',
  `INSERT INTO webhook_deliveries (id, webhook_id, event_id, event_type, resource_id, next_attempt_at)
   SELECT n.id, w.id, e.id, e.type, e.resource_id, CASE WHEN w.state = 'active' THEN slipway_now() END
   FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) WITH ORDINALITY n (id, webhook_id, event_id, ordinal)
   JOIN webhooks w ON w.id = n.webhook_id JOIN events e ON e.id = n.event_id
   ORDER BY n.ordinal
   ON CONFLICT DO NOTHING`,
)

const moveCursor = statement<never, [number]>(
  'webhook_cursor_move',
  'UPDATE webhook_cursor SET position = $1 WHERE position < $1',
)

const insertDirect = statement<DeliveryRow, [string, string, string]>(
  'webhook_delivery_insert_direct',
  `INSERT INTO webhook_deliveries (id, webhook_id, event_id, event_type, resource_id, is_direct, next_attempt_at)
   SELECT $1, $2, e.id, e.type, e.resource_id, true, slipway_now() FROM events e WHERE e.id = $3 RETURNING *`,
)

export interface ClaimedDelivery {
  delivery: DeliveryRow
  url: string
  event: EventRow
}

// The earliest of each resource alone, so that order holds; a few of each webhook, so that a slow one keeps nobody out.
// Counting the attempt at the claim makes it the fence: a worker that lost its lease writes nothing.
const claim = statement<
  DeliveryRow & { url: string; event: Omit<EventRow, 'created_at'>; event_created_at: Date },
  [string[], number, number, number]
>(
  'webhook_deliveries_claim',
  `WITH due AS (
     SELECT d.id, row_number() OVER (PARTITION BY d.webhook_id ORDER BY d.seq) AS n
     FROM (SELECT * FROM webhook_deliveries d
           WHERE d.state = 'pending' AND d.next_attempt_at <= slipway_now()
             AND (d.lease_until IS NULL OR d.lease_until <= slipway_now()) AND d.webhook_id <> ALL ($1::uuid[])
             AND (d.is_direct OR NOT EXISTS (
               SELECT FROM webhook_deliveries b WHERE b.webhook_id = d.webhook_id AND b.resource_id = d.resource_id
                 AND b.state = 'pending' AND NOT b.is_direct AND b.seq < d.seq))
           ORDER BY d.next_attempt_at LIMIT 200) d),
   mine AS (
     SELECT d.id FROM webhook_deliveries d JOIN due ON due.id = d.id AND due.n <= $2
     WHERE d.state = 'pending' AND (d.lease_until IS NULL OR d.lease_until <= slipway_now())
     ORDER BY d.seq LIMIT $3 FOR UPDATE OF d SKIP LOCKED)
   UPDATE webhook_deliveries d SET attempts = attempts + 1, lease_until = slipway_now() + $4 * interval '1 millisecond'
   FROM mine, webhooks w, events e
   WHERE d.id = mine.id AND w.id = d.webhook_id AND e.id = d.event_id AND e.position IS NOT NULL
   RETURNING d.*, w.url, to_jsonb(e) AS event, e.created_at AS event_created_at`,
)

const succeed = statement<never, [string, number, number]>(
  'webhook_delivery_succeed',
  `WITH done AS (
     UPDATE webhook_deliveries SET state = 'delivered', completed_at = slipway_now(), next_attempt_at = NULL,
            lease_until = NULL, response_status = $3, error = ''
     WHERE id = $1 AND attempts = $2 AND state = 'pending' RETURNING webhook_id)
   UPDATE webhooks w SET failing_since = NULL FROM done WHERE w.id = done.webhook_id AND w.failing_since IS NOT NULL`,
)

// Given up once its time is over; a pause of null seconds means that it has no attempts left.
const fail = statement<
  { webhook_id: string; state: 'pending' | 'failed' },
  [string, number, number, string, number | null]
>(
  'webhook_delivery_fail',
  `WITH w AS (
     UPDATE webhooks w SET failing_since = coalesce(w.failing_since, slipway_now())
     FROM webhook_deliveries d WHERE d.id = $1 AND d.attempts = $2 AND d.state = 'pending' AND w.id = d.webhook_id
     RETURNING w.id, w.state)
   UPDATE webhook_deliveries d
   SET response_status = $3, error = $4, lease_until = NULL,
       state = CASE WHEN $5::float8 IS NULL THEN 'failed' ELSE 'pending' END,
       completed_at = CASE WHEN $5::float8 IS NULL THEN slipway_now() END,
       next_attempt_at = CASE WHEN w.state = 'active' THEN slipway_now() + $5 * interval '1 second' END
   FROM w WHERE d.id = $1 AND d.attempts = $2 AND d.state = 'pending'
   RETURNING d.webhook_id, d.state`,
)

const list = statement<DeliveryRow, [string, number | null, number]>(
  'webhook_delivery_list',
  `SELECT * FROM webhook_deliveries WHERE webhook_id = $1 AND ($2::bigint IS NULL OR seq < $2)
   ORDER BY seq DESC LIMIT $3`,
)

const find = statement<DeliveryRow, [string, string]>(
  'webhook_delivery_find',
  'SELECT * FROM webhook_deliveries WHERE webhook_id = $1 AND id = $2',
)

/** Where events begin to matter to a webhook; null while there is none. */
export const firstWantedPosition = async (db: Queryable): Promise<number | null> =>
  (await oldest.one(db))?.since ?? null

/**
 * Makes the deliveries of the next events; answers whether there may be more. One process at a time, and the cursor
 * moves in the transaction that makes them: no event is left out or taken twice.
 */
export function fanOutEvents(database: Database, since: number, most: number): Promise<boolean> {
  return database.transaction(async (tx) => {
    const cursor = await lockCursor.one(tx)
    if (!cursor) return false
    const rows = await fresh.all(tx, Math.max(cursor.position, since), most)
    const wanted = rows.filter(({ webhook_id }) => webhook_id !== null)
    if (wanted.length > 0)
      await insert.run(
        tx,
        wanted.map(() => uuid()),
        wanted.map(({ webhook_id }) => webhook_id!),
        wanted.map(({ event_id }) => event_id),
      )
    const last = rows.at(-1)
    if (last) await moveCursor.run(tx, last.position)
    return rows.length >= most
  })
}

export async function claimDeliveries(
  db: Queryable,
  limits: { busyWebhookIds: string[]; eachWebhook: number; most: number; leaseMs: number },
): Promise<ClaimedDelivery[]> {
  const rows = await claim.all(db, limits.busyWebhookIds, limits.eachWebhook, limits.most, limits.leaseMs)
  return rows.map(({ url, event, event_created_at, ...delivery }) => ({
    delivery,
    url,
    event: { ...event, created_at: event_created_at },
  }))
}

export const markDelivered = (db: Queryable, id: string, attempt: number, status: number) =>
  succeed.run(db, id, attempt, status)

/** Undefined when another worker has taken it over. */
export const markAttemptFailed = (
  tx: Tx,
  id: string,
  attempt: number,
  outcome: { status: number; error: string; pauseS: number | null },
) => fail.one(tx, id, attempt, outcome.status, outcome.error, outcome.pauseS)

export const insertDirectDelivery = async (
  tx: Tx,
  webhookId: string,
  eventId: string,
): Promise<DeliveryRow> => (await insertDirect.one(tx, uuid(), webhookId, eventId))!
export const listDeliveries = (db: Queryable, webhookId: string, beforeSeq: number | null, limit: number) =>
  list.all(db, webhookId, beforeSeq, limit)
export const findDelivery = (db: Queryable, webhookId: string, id: string) => find.one(db, webhookId, id)
