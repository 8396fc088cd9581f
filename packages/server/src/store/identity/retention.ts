import type { Queryable } from '../../postgres/database.ts'
import { type Statement, statement } from '../../postgres/statement.ts'

type Prune = Statement<never, { limit: number }>

// If another transaction changes a row in the meantime, the row gets a new ctid and is not deleted.
const prune = (table: string, isExpired: string, name = table): Prune =>
  statement(
    `prune_${name}`,
    `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${table} t WHERE ${isExpired} LIMIT :limit))`,
  )

/** Token families come after the tokens that refer to them. */
const credentials: Prune[] = [
  prune('access_tokens', 'expires_at < sign_in_now()'),
  prune('refresh_tokens', 'expires_at < sign_in_now()'),
  prune('password_failures', `failed_at < sign_in_now() - interval '1 hour'`),
  prune('known_addresses', `signed_in_at < sign_in_now() - interval '30 days'`),
  prune('invitations', `expires_at < sign_in_now() - interval '90 days'`),
  prune('one_time_codes', `expires_at < sign_in_now() - interval '90 days'`),
  prune('token_families', `revoked_at < sign_in_now() - interval '1 day'`, 'revoked_token_families'),
  prune(
    'token_families',
    `t.created_at < sign_in_now() - interval '31 days'
       AND NOT EXISTS (SELECT FROM refresh_tokens r WHERE r.family_id = t.id AND r.expires_at >= sign_in_now())`,
  ),
  prune(
    'access_keys',
    `revoked_at < slipway_now() - interval '90 days'
       AND NOT EXISTS (SELECT FROM invitations i WHERE i.maker_key_id = t.id)`,
  ),
  prune('quota_requests', `decided_at < slipway_now() - interval '90 days'`),
  prune('console_tickets', 'expires_at < slipway_now()'),
  prune('idempotency_keys', `created_at < slipway_now() - interval '24 hours'`),
]

/** Each function deletes at most `limit` expired rows of one table, and returns their number. */
export const credentialPrunes = credentials.map(
  (statement) => (db: Queryable, limit: number) => statement.run(db, { limit }),
)
