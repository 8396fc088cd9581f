import type { Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'

export const sessionMinutes = 15

export interface BillingSessionRow {
  organization_id: string
  user_id: string
  expires_at: Date
}

const insert = statement<never, { tokenHash: Buffer; organizationId: string; userId: string }>(
  'billing_session_insert',
  `INSERT INTO billing_sessions (token_hash, organization_id, user_id, expires_at)
   VALUES (:tokenHash, :organizationId, :userId, slipway_now() + interval '${sessionMinutes} minutes')`,
)

// A session is worth something only in its time, and while its maker may see to the billing.
const find = statement<BillingSessionRow, { tokenHash: Buffer }>(
  'billing_session_find',
  `SELECT s.organization_id, s.user_id, s.expires_at
   FROM billing_sessions s JOIN organizations o ON o.id = s.organization_id JOIN users u ON u.id = s.user_id
   JOIN memberships m ON m.organization_id = s.organization_id AND m.user_id = s.user_id AND m.role = 'owner'
   WHERE s.token_hash = :tokenHash AND s.expires_at > slipway_now()
     AND o.suspended_at IS NULL AND u.suspended_at IS NULL`,
)

const prune = statement(
  'billing_session_prune',
  'DELETE FROM billing_sessions WHERE expires_at <= slipway_now()',
)

export const insertBillingSession = (tx: Tx, tokenHash: Buffer, organizationId: string, userId: string) =>
  insert.run(tx, { tokenHash, organizationId, userId })

export const findBillingSession = (db: Queryable, tokenHash: Buffer) => find.one(db, { tokenHash })

export const pruneBillingSessions = (db: Queryable) => prune.run(db)
