import type { Queryable, Tx } from '../../postgres/database.ts'
import { isBefore, statement } from '../../postgres/statement.ts'
import { scheduleWebhooks } from './due-webhooks.ts'

export interface WebhookRow {
  id: string
  project_id: string
  url: string
  event_types: string[]
  state: 'active' | 'paused'
  fails_since: Date | null
  due_at: Date | null
  created_at: Date
}

const insert = statement<WebhookRow, { id: string; projectId: string; url: string; eventTypes: string[] }>(
  'webhook_insert',
  `INSERT INTO webhooks (id, project_id, url, event_types, since_position)
   SELECT :id, :projectId, :url, :eventTypes, last_position FROM event_counter RETURNING *`,
)

const insertSecret = statement<never, { id: string; sealed: Buffer }>(
  'webhook_secret_insert',
  'INSERT INTO webhook_secrets (webhook_id, sealed) VALUES (:id, :sealed)',
)

const retireSecret = statement<never, { id: string; overlapS: number }>(
  'webhook_secret_retire',
  `UPDATE webhook_secrets SET expires_at = slipway_now() + :overlapS * interval '1 second'
   WHERE webhook_id = :id AND expires_at IS NULL`,
)

// The newest secret comes first; a receiver accepts a signature made with any secret that it has.
const secrets = statement<{ sealed: Buffer }, { id: string }>(
  'webhook_secrets',
  `SELECT sealed FROM webhook_secrets
   WHERE webhook_id = :id AND (expires_at IS NULL OR expires_at > slipway_now())
   ORDER BY expires_at DESC NULLS FIRST LIMIT 5`,
)

export const listWebhooks = statement<
  WebhookRow,
  { projectId: string; beforeId: string | null; limit: number }
>(
  'webhook_list',
  `SELECT * FROM webhooks WHERE project_id = :projectId AND ${isBefore('id')}
   ORDER BY id DESC LIMIT :limit`,
).allBy('projectId', 'beforeId', 'limit')

export const findWebhook = statement<WebhookRow, { projectId: string; id: string }>(
  'webhook_find',
  'SELECT * FROM webhooks WHERE project_id = :projectId AND id = :id',
).oneBy('projectId', 'id')

export const lockWebhook = statement<WebhookRow, { projectId: string; id: string }, Tx>(
  'webhook_lock',
  'SELECT * FROM webhooks WHERE project_id = :projectId AND id = :id FOR UPDATE',
).oneBy('projectId', 'id')

const update = statement<
  WebhookRow,
  {
    id: string
    url: string | null
    eventTypes: string[] | null
    state: string | null
    isNewStart: boolean
  }
>(
  'webhook_update',
  `UPDATE webhooks SET url = coalesce(:url, url), event_types = coalesce(:eventTypes, event_types),
          state = coalesce(:state, state),
          fails_since = CASE WHEN :isNewStart THEN NULL ELSE fails_since END,
          rests_until = CASE WHEN :isNewStart THEN NULL ELSE rests_until END,
          failures = CASE WHEN :isNewStart THEN 0 ELSE failures END
   WHERE id = :id RETURNING *`,
)

// Makes the first delivery of each queue due if the webhook is active, but not before an attempt in progress
// has ended. Changes nothing if the webhook is paused. The caller has locked the webhook's row.
const release = statement<never, { id: string }>(
  'webhook_release',
  `UPDATE webhook_deliveries d SET next_attempt_at = greatest(slipway_now(), d.leased_until)
   FROM webhooks w WHERE w.id = :id AND w.state = 'active' AND d.webhook_id = w.id AND d.state = 'pending'
     AND d.id = ANY (ARRAY(
       SELECT DISTINCT ON (h.resource_id) h.id FROM webhook_deliveries h
       WHERE h.webhook_id = :id AND h.state = 'pending' AND NOT h.is_direct ORDER BY h.resource_id, h.seq))`,
)

const hold = statement<never, { id: string }>(
  'webhook_hold',
  `UPDATE webhook_deliveries d SET next_attempt_at = NULL
   FROM webhooks w WHERE w.id = :id AND w.state = 'paused' AND d.webhook_id = w.id AND d.state = 'pending'
     AND NOT d.is_direct AND d.next_attempt_at IS NOT NULL`,
)

export const deleteWebhook = statement<never, { id: string }, Tx>(
  'webhook_delete',
  'DELETE FROM webhooks WHERE id = :id',
).runBy('id')

const pauseFailing = statement<WebhookRow, { id: string; failingS: number }>(
  'webhook_pause_failing',
  `UPDATE webhooks SET state = 'paused'
   WHERE id = :id AND state = 'active'
     AND fails_since <= slipway_now() - :failingS * interval '1 second' RETURNING *`,
)

export const insertWebhook = async (
  tx: Tx,
  webhook: { id: string; projectId: string; url: string; eventTypes: string[]; sealed: Buffer },
): Promise<WebhookRow> => {
  const row = (await insert.one(tx, webhook))!
  await insertSecret.run(tx, webhook)
  return row
}

/**
 * Replaces the secret. For `overlapS` seconds, deliveries are also signed with the previous secret. The caller
 * has locked the webhook's row.
 */
export async function replaceWebhookSecret(
  tx: Tx,
  id: string,
  sealed: Buffer,
  overlapS: number,
): Promise<void> {
  await retireSecret.run(tx, { id, overlapS })
  await insertSecret.run(tx, { id, sealed })
}

export const listWebhookSecrets = async (db: Queryable, id: string): Promise<Buffer[]> =>
  (await secrets.all(db, { id })).map(({ sealed }) => sealed)
export async function updateWebhook(
  tx: Tx,
  id: string,
  changes: { url?: string; event_types?: string[]; state?: 'active' | 'paused' },
): Promise<WebhookRow> {
  const row = (await update.one(tx, {
    id,
    url: changes.url ?? null,
    eventTypes: changes.event_types ?? null,
    state: changes.state ?? null,
    isNewStart: changes.url !== undefined || changes.state === 'active',
  }))!
  if (changes.url !== undefined || changes.state !== undefined) await reschedule(tx, id)
  return row
}

async function reschedule(tx: Tx, id: string): Promise<void> {
  await release.run(tx, { id })
  await hold.run(tx, { id })
  await scheduleWebhooks(tx, [id])
}

/**
 * Pauses the webhook if no attempt has succeeded for `failingS` seconds. Returns the webhook if it was
 * paused.
 */
export async function pauseFailingWebhook(
  tx: Tx,
  id: string,
  failingS: number,
): Promise<WebhookRow | undefined> {
  const row = await pauseFailing.one(tx, { id, failingS })
  if (row) await reschedule(tx, id)
  return row
}
