import { uuid } from '../../domain/ids.ts'
import type { Database, Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import { type DeliveryRow, lockWebhooks, scheduleWebhooks } from './due-webhooks.ts'
import type { EventRow } from './events.ts'

/** A delivery with the resource of its event. */
export type DeliveryWithResource = DeliveryRow & { resource_type: string; resource_name: string }

// Events of operations do not have the name of their resource, a webhook has a URL instead of a name, and a capacity
// request has the name of what it waits for.
const withResource = (deliveries: string) =>
  `SELECT d.*, coalesce(e.resource_type, '') AS resource_type,
          coalesce(e.data ->> 'name', e.data ->> 'url', e.data #>> '{request,vm,name}',
                   e.data #>> '{request,instance_group,name}',
                   (SELECT v.name FROM vms v
                    WHERE v.id IN ((e.data #>> '{request,start_vm_id}')::uuid,
                                   (e.data #>> '{request,replace_vm_id}')::uuid)), '') AS resource_name
   FROM (${deliveries}) d LEFT JOIN events_written e ON e.id = d.event_id`

const lockCursor = statement<{ position: number }>(
  'webhook_cursor_lock',
  'SELECT position FROM webhook_fan_out FOR UPDATE SKIP LOCKED',
)

// Events from before the oldest webhook are not delivered.
const oldest = statement<{ since: number | null }>(
  'webhook_oldest',
  'SELECT min(since_position) AS since FROM webhooks',
)

// The limit is a literal in the SQL: with a parameter, the planner expects a tenth of all events and reads
// every webhook.
const fanOutBatch = 500

// A test event is delivered separately, to its one webhook.
const fresh = statement<{ position: number; event_id: string; webhook_id: string | null }, { after: number }>(
  'webhook_fresh_events',
  `SELECT e.position, e.id AS event_id, w.id AS webhook_id
   FROM (SELECT id, position, project_id, type FROM events WHERE position > :after ORDER BY position LIMIT ${fanOutBatch}) e
   LEFT JOIN webhooks w ON w.project_id = e.project_id AND e.position > w.since_position AND e.type <> 'webhook.test'
     AND (w.event_types = '{}' OR e.type = ANY (w.event_types)
          OR EXISTS (SELECT FROM unnest(w.event_types) t WHERE t LIKE '%*' AND starts_with(e.type, left(t, -1))))
   ORDER BY e.position`,
)

// A delivery that is added to an empty queue is due immediately. The caller has locked the webhooks' rows, so
// that no first delivery ends in the meantime.
const insert = statement<never, { ids: string[]; webhookIds: string[]; eventIds: string[] }>(
  'webhook_deliveries_insert',
  `INSERT INTO webhook_deliveries (id, webhook_id, event_id, event_type, resource_id, next_attempt_at)
   SELECT n.id, w.id, e.id, e.type, e.resource_id,
          CASE WHEN w.state = 'active' AND NOT EXISTS (
                 SELECT FROM webhook_deliveries b WHERE b.webhook_id = w.id AND b.resource_id = e.resource_id
                   AND b.state = 'pending' AND NOT b.is_direct)
               AND row_number() OVER (PARTITION BY w.id, e.resource_id ORDER BY n.ordinal) = 1
               THEN slipway_now() END
   FROM unnest(:ids::uuid[], :webhookIds::uuid[], :eventIds::uuid[]) WITH ORDINALITY
     n (id, webhook_id, event_id, ordinal)
   JOIN webhooks w ON w.id = n.webhook_id JOIN events e ON e.id = n.event_id
   ORDER BY n.ordinal
   ON CONFLICT DO NOTHING`,
)

const moveCursor = statement<never, { position: number }>(
  'webhook_cursor_move',
  'UPDATE webhook_fan_out SET position = :position WHERE position < :position',
)

const insertDirect = statement<never, { id: string; webhookId: string; eventId: string }>(
  'webhook_delivery_insert_direct',
  `INSERT INTO webhook_deliveries (id, webhook_id, event_id, event_type, resource_id, is_direct, next_attempt_at)
   SELECT :id, :webhookId, e.id, e.type, e.resource_id, true, slipway_now()
   FROM events_written e WHERE e.id = :eventId`,
)

const endPause = statement<never, { id: string }>(
  'webhook_lift_rest',
  'UPDATE webhooks SET rests_until = NULL WHERE id = :id AND rests_until IS NOT NULL',
)

// Finds the age of the oldest of the last `count` deliveries that a user requested.
const requestedAgo = statement<{ ago_s: number }, { webhookId: string; count: number }>(
  'webhook_delivery_asked_ago',
  `SELECT extract(epoch FROM slipway_now() - created_at)::float8 AS ago_s FROM webhook_deliveries
   WHERE webhook_id = :webhookId AND is_direct ORDER BY created_at DESC OFFSET :count - 1 LIMIT 1`,
)

export const listDeliveries = statement<
  DeliveryWithResource,
  { webhookId: string; state: DeliveryRow['state'] | null; beforeSeq: number | null; limit: number }
>(
  'webhook_delivery_list',
  `${withResource(`
     SELECT * FROM webhook_deliveries
     WHERE webhook_id = :webhookId AND seq < coalesce(:beforeSeq::bigint, 9223372036854775807)
       AND (:state::text IS NULL OR state = :state)
     ORDER BY seq DESC LIMIT :limit`)}
   ORDER BY d.seq DESC`,
).allBy('webhookId', 'state', 'beforeSeq', 'limit')

export const findDelivery = statement<DeliveryWithResource, { webhookId: string; id: string }>(
  'webhook_delivery_find',
  withResource('SELECT * FROM webhook_deliveries WHERE webhook_id = :webhookId AND id = :id'),
).oneBy('webhookId', 'id')

/** Returns the event of a delivery as it is sent; undefined if it has no position yet. */
export const findDeliveryEvent = statement<EventRow, { eventId: string }>(
  'webhook_delivery_event',
  'SELECT * FROM events WHERE id = :eventId',
).oneBy('eventId')

/** Returns the position of the first event that a webhook may need; null while there are no webhooks. */
export const firstWantedPosition = async (db: Queryable): Promise<number | null> =>
  (await oldest.one(db))?.since ?? null

/**
 * Creates the deliveries of the next events. Returns whether there may be more. Only one process does this at a
 * time, and the cursor moves in the same transaction, so that no event is skipped or delivered twice.
 */
export function fanOutEvents(database: Database, since: number): Promise<boolean> {
  return database.transaction(async (tx) => {
    const cursor = await lockCursor.one(tx)
    if (!cursor) return false
    const rows = await fresh.all(tx, { after: Math.max(cursor.position, since) })
    const wanted = rows.filter(({ webhook_id }) => webhook_id !== null)
    if (wanted.length > 0) {
      const webhookIds = wanted.map(({ webhook_id }) => webhook_id!)
      await lockWebhooks(tx, webhookIds)
      await insert.run(tx, {
        ids: wanted.map(() => uuid()),
        webhookIds,
        eventIds: wanted.map(({ event_id }) => event_id),
      })
      await scheduleWebhooks(tx, [...new Set(webhookIds)])
    }
    const last = rows.at(-1)
    if (last) await moveCursor.run(tx, { position: last.position })
    return rows.length >= fanOutBatch
  })
}

/**
 * Creates a delivery that a user requested; it is sent immediately. The caller has locked the webhook's row.
 */
export async function insertDirectDelivery(
  tx: Tx,
  webhookId: string,
  eventId: string,
): Promise<DeliveryWithResource> {
  const id = uuid()
  await insertDirect.run(tx, { id, webhookId, eventId })
  await endPause.run(tx, { id: webhookId })
  await scheduleWebhooks(tx, [webhookId])
  return (await findDelivery(tx, webhookId, id))!
}

/**
 * Returns the age, in seconds, of the oldest of the last `count` deliveries that users requested; null if
 * there were fewer.
 */
export const secondsSinceSent = async (tx: Tx, webhookId: string, count: number): Promise<number | null> =>
  (await requestedAgo.one(tx, { webhookId, count }))?.ago_s ?? null
