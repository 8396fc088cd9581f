import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import { isInEffect } from '../identity/members.ts'

export const sessionMinutes = 15

export interface BillingSessionRow {
  organization_id: string
  /** Set if the link is for one project; such a link can only add a payment method. */
  project_id: string | null
  user_id: string | null
  access_key_id: string | null
  /** Remaining whole minutes, at least 1. */
  minutes_left: number
}

export interface NewBillingSession {
  tokenHash: Buffer
  organizationId: string
  projectId: string | null
  userId: string | null
  tokenFamilyId: string | null
  accessKeyId: string | null
}

export const insertBillingSession = statement<never, NewBillingSession, Tx>(
  'billing_session_insert',
  `INSERT INTO billing_sessions (token_hash, organization_id, project_id, user_id, token_family_id, access_key_id, expires_at)
   VALUES (:tokenHash, :organizationId, :projectId, :userId, :tokenFamilyId, :accessKeyId,
           slipway_now() + interval '${sessionMinutes} minutes')`,
).run

/** A session is valid until it expires, and only while its credential is valid: the login of an owner, or a key. */
export const findBillingSession = statement<BillingSessionRow, { tokenHash: Buffer }>(
  'billing_session_find',
  `SELECT s.organization_id, s.project_id, s.user_id, s.access_key_id,
          ceil(extract(epoch FROM s.expires_at - slipway_now()) / 60)::int AS minutes_left
   FROM billing_sessions s
   WHERE s.token_hash = :tokenHash AND s.expires_at > slipway_now()
     AND CASE WHEN s.access_key_id IS NULL
              THEN EXISTS (SELECT FROM users u JOIN memberships m ON m.user_id = u.id
                           WHERE u.id = s.user_id AND u.suspended_at IS NULL
                             AND m.organization_id = s.organization_id AND m.role = 'owner' AND ${isInEffect})
                   AND EXISTS (SELECT FROM token_families f
                               WHERE f.id = s.token_family_id AND f.revoked_at IS NULL AND f.expires_at > slipway_now())
              ELSE EXISTS (SELECT FROM access_keys k LEFT JOIN projects p ON p.id = k.project_id
                           LEFT JOIN users u ON u.id = k.created_by
                           WHERE k.id = s.access_key_id AND k.revoked_at IS NULL AND p.deleted_at IS NULL
                             AND u.suspended_at IS NULL AND coalesce(k.expires_at > slipway_now(), true)) END`,
).oneBy('tokenHash')

export const pruneBillingSessions = statement(
  'billing_session_prune',
  'DELETE FROM billing_sessions WHERE expires_at <= slipway_now()',
).runBy()
