import { type Queryable, statement, type Tx } from '../database.ts'

export interface WebhookRow {
  id: string
  project_id: string
  url: string
  event_types: string[]
  state: 'active' | 'paused'
  created_at: Date
}

const insert = statement<WebhookRow, [string, string, string, string[]]>(
  'webhook_insert',
  `INSERT INTO webhooks (id, project_id, url, event_types, since_position)
   SELECT $1, $2, $3, $4, last_position FROM event_counter RETURNING *`,
)

const insertSecret = statement<never, [string, string]>(
  'webhook_secret_insert',
  'INSERT INTO webhook_secrets (webhook_id, secret) VALUES ($1, $2)',
)

const retireSecret = statement<never, [string, number]>(
  'webhook_secret_retire',
  `UPDATE webhook_secrets SET expires_at = slipway_now() + $2 * interval '1 second'
   WHERE webhook_id = $1 AND expires_at IS NULL`,
)

// The newest first; a receiver that knows any of them is satisfied.
const secrets = statement<{ secret: string }, [string]>(
  'webhook_secrets',
  `SELECT secret FROM webhook_secrets
   WHERE webhook_id = $1 AND (expires_at IS NULL OR expires_at > slipway_now())
   ORDER BY expires_at DESC NULLS FIRST LIMIT 5`,
)

const count = statement<{ count: number }, [string]>(
  'webhook_count',
  'SELECT count(*) AS count FROM webhooks WHERE project_id = $1',
)

const list = statement<WebhookRow, [string, string | null, number]>(
  'webhook_list',
  'SELECT * FROM webhooks WHERE project_id = $1 AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3',
)

const find = statement<WebhookRow, [string, string]>(
  'webhook_find',
  'SELECT * FROM webhooks WHERE project_id = $1 AND id = $2',
)

const lock = statement<WebhookRow, [string, string]>(
  'webhook_lock',
  'SELECT * FROM webhooks WHERE project_id = $1 AND id = $2 FOR UPDATE',
)

const update = statement<WebhookRow, [string, string | null, string[] | null, string | null]>(
  'webhook_update',
  `UPDATE webhooks SET url = coalesce($2, url), event_types = coalesce($3, event_types), state = coalesce($4, state),
          failing_since = CASE WHEN $4 = 'active' OR $2 IS NOT NULL THEN NULL ELSE failing_since END
   WHERE id = $1 RETURNING *`,
)

// What waits goes out at once when the webhook is active, and stays when it is paused.
const reschedule = statement<never, [string]>(
  'webhook_reschedule',
  `UPDATE webhook_deliveries d
   SET next_attempt_at = CASE WHEN w.state = 'active' THEN slipway_now() END
   FROM webhooks w WHERE w.id = $1 AND d.webhook_id = w.id AND d.state = 'pending'
     AND (w.state = 'active' OR NOT d.is_direct)`,
)

const remove = statement<never, [string]>('webhook_delete', 'DELETE FROM webhooks WHERE id = $1')

const pauseFailing = statement<WebhookRow, [string, number]>(
  'webhook_pause_failing',
  `UPDATE webhooks SET state = 'paused'
   WHERE id = $1 AND state = 'active' AND failing_since <= slipway_now() - $2 * interval '1 second' RETURNING *`,
)

export const insertWebhook = async (
  tx: Tx,
  webhook: { id: string; projectId: string; url: string; eventTypes: string[]; secret: string },
): Promise<WebhookRow> => {
  const row = (await insert.one(tx, webhook.id, webhook.projectId, webhook.url, webhook.eventTypes))!
  await insertSecret.run(tx, webhook.id, webhook.secret)
  return row
}

/** The one before signs along for `overlapS`. The caller holds the webhook's row. */
export async function replaceWebhookSecret(
  tx: Tx,
  id: string,
  secret: string,
  overlapS: number,
): Promise<void> {
  await retireSecret.run(tx, id, overlapS)
  await insertSecret.run(tx, id, secret)
}

export const listWebhookSecrets = async (db: Queryable, id: string): Promise<string[]> =>
  (await secrets.all(db, id)).map(({ secret }) => secret)
export const countWebhooks = async (db: Queryable, projectId: string): Promise<number> =>
  (await count.one(db, projectId))!.count
export const listWebhooks = (db: Queryable, projectId: string, beforeId: string | null, limit: number) =>
  list.all(db, projectId, beforeId, limit)
export const findWebhook = (db: Queryable, projectId: string, id: string) => find.one(db, projectId, id)
export const lockWebhook = (tx: Tx, projectId: string, id: string) => lock.one(tx, projectId, id)

export async function updateWebhook(
  tx: Tx,
  id: string,
  changes: { url?: string; event_types?: string[]; state?: 'active' | 'paused' },
): Promise<WebhookRow> {
  const row = (await update.one(
    tx,
    id,
    changes.url ?? null,
    changes.event_types ?? null,
    changes.state ?? null,
  ))!
  if (changes.url !== undefined || changes.state !== undefined) await reschedule.run(tx, id)
  return row
}

export const deleteWebhook = (tx: Tx, id: string) => remove.run(tx, id)

/** Pauses it if no attempt has succeeded for so long; answers it if that was so. */
export async function pauseFailingWebhook(
  tx: Tx,
  id: string,
  failingS: number,
): Promise<WebhookRow | undefined> {
  const row = await pauseFailing.one(tx, id, failingS)
  if (row) await reschedule.run(tx, id)
  return row
}
