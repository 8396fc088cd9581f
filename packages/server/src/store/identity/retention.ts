import type { Queryable } from '../database.ts'
import { statement } from '../statement.ts'

const pruneTokens = statement(
  'prune_tokens',
  `WITH a AS (DELETE FROM access_tokens WHERE expires_at < slipway_now()),
        r AS (DELETE FROM refresh_tokens WHERE expires_at < slipway_now()),
        f AS (DELETE FROM password_failures WHERE failed_at < slipway_now() - interval '1 hour'),
        c AS (DELETE FROM one_time_codes WHERE expires_at < slipway_now() - interval '90 days')
   DELETE FROM token_families t
   WHERE (t.revoked_at IS NOT NULL AND t.revoked_at < slipway_now() - interval '1 day')
      OR (t.created_at < slipway_now() - interval '31 days'
          AND NOT EXISTS (SELECT FROM refresh_tokens r WHERE r.family_id = t.id AND r.expires_at >= slipway_now()))`,
)

const pruneKeys = statement(
  'prune_idempotency_keys',
  `DELETE FROM idempotency_keys WHERE created_at < slipway_now() - interval '24 hours'`,
)

/** Deletes credentials, failed sign-ins and remembered answers that no longer count. */
export async function pruneCredentials(db: Queryable): Promise<void> {
  await pruneTokens.run(db)
  await pruneKeys.run(db)
}
