import type { Queryable, Tx } from '../database.ts'
import { isBefore, statement } from '../statement.ts'

export interface WebhookRow {
  id: string
  project_id: string
  url: string
  event_types: string[]
  state: 'active' | 'paused'
  created_at: Date
}

const insert = statement<WebhookRow, { id: string; projectId: string; url: string; eventTypes: string[] }>(
  'webhook_insert',
  `INSERT INTO webhooks (id, project_id, url, event_types, since_position)
   SELECT :id, :projectId, :url, :eventTypes, last_position FROM event_counter RETURNING *`,
)

const insertSecret = statement<never, { id: string; secret: string }>(
  'webhook_secret_insert',
  'INSERT INTO webhook_secrets (webhook_id, secret) VALUES (:id, :secret)',
)

const retireSecret = statement<never, { id: string; overlapS: number }>(
  'webhook_secret_retire',
  `UPDATE webhook_secrets SET expires_at = slipway_now() + :overlapS * interval '1 second'
   WHERE webhook_id = :id AND expires_at IS NULL`,
)

// The newest comes first; a receiver that knows any of them is satisfied.
const secrets = statement<{ secret: string }, { id: string }>(
  'webhook_secrets',
  `SELECT secret FROM webhook_secrets
   WHERE webhook_id = :id AND (expires_at IS NULL OR expires_at > slipway_now())
   ORDER BY expires_at DESC NULLS FIRST LIMIT 5`,
)

const list = statement<WebhookRow, { projectId: string; beforeId: string | null; limit: number }>(
  'webhook_list',
  `SELECT * FROM webhooks WHERE project_id = :projectId AND ${isBefore('id')}
   ORDER BY id DESC LIMIT :limit`,
)

const find = statement<WebhookRow, { projectId: string; id: string }>(
  'webhook_find',
  'SELECT * FROM webhooks WHERE project_id = :projectId AND id = :id',
)

const lock = statement<WebhookRow, { projectId: string; id: string }>(
  'webhook_lock',
  'SELECT * FROM webhooks WHERE project_id = :projectId AND id = :id FOR UPDATE',
)

const update = statement<
  WebhookRow,
  { id: string; url: string | null; eventTypes: string[] | null; state: string | null }
>(
  'webhook_update',
  `UPDATE webhooks SET url = coalesce(:url, url), event_types = coalesce(:eventTypes, event_types),
          state = coalesce(:state, state),
          failing_since = CASE WHEN :state = 'active' OR :url IS NOT NULL THEN NULL ELSE failing_since END
   WHERE id = :id RETURNING *`,
)

// What waits goes out at once when the webhook is active, and stays when it is paused.
const reschedule = statement<never, { id: string }>(
  'webhook_reschedule',
  `UPDATE webhook_deliveries d
   SET next_attempt_at = CASE WHEN w.state = 'active' THEN slipway_now() END
   FROM webhooks w WHERE w.id = :id AND d.webhook_id = w.id AND d.state = 'pending'
     AND (w.state = 'active' OR NOT d.is_direct)`,
)

const remove = statement<never, { id: string }>('webhook_delete', 'DELETE FROM webhooks WHERE id = :id')

const pauseFailing = statement<WebhookRow, { id: string; failingS: number }>(
  'webhook_pause_failing',
  `UPDATE webhooks SET state = 'paused'
   WHERE id = :id AND state = 'active'
     AND failing_since <= slipway_now() - :failingS * interval '1 second' RETURNING *`,
)

export const insertWebhook = async (
  tx: Tx,
  webhook: { id: string; projectId: string; url: string; eventTypes: string[]; secret: string },
): Promise<WebhookRow> => {
  const row = (await insert.one(tx, webhook))!
  await insertSecret.run(tx, webhook)
  return row
}

/** The secret before it signs along for `overlapS`. The caller holds the webhook's row. */
export async function replaceWebhookSecret(
  tx: Tx,
  id: string,
  secret: string,
  overlapS: number,
): Promise<void> {
  await retireSecret.run(tx, { id, overlapS })
  await insertSecret.run(tx, { id, secret })
}

export const listWebhookSecrets = async (db: Queryable, id: string): Promise<string[]> =>
  (await secrets.all(db, { id })).map(({ secret }) => secret)
export const listWebhooks = (db: Queryable, projectId: string, beforeId: string | null, limit: number) =>
  list.all(db, { projectId, beforeId, limit })
export const findWebhook = (db: Queryable, projectId: string, id: string) => find.one(db, { projectId, id })
export const lockWebhook = (tx: Tx, projectId: string, id: string) => lock.one(tx, { projectId, id })

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
  }))!
  if (changes.url !== undefined || changes.state !== undefined) await reschedule.run(tx, { id })
  return row
}

export const deleteWebhook = (tx: Tx, id: string) => remove.run(tx, { id })

/** Pauses it if no attempt has succeeded for so long, and returns it if that was so. */
export async function pauseFailingWebhook(
  tx: Tx,
  id: string,
  failingS: number,
): Promise<WebhookRow | undefined> {
  const row = await pauseFailing.one(tx, { id, failingS })
  if (row) await reschedule.run(tx, { id })
  return row
}
