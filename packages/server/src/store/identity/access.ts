import type { BlockList } from 'node:net'
import type { PaymentState, Role } from '@slipway/contract'
import { blockListOf } from '../../domain/address-blocks.ts'
import type { Queryable } from '../../postgres/database.ts'
import { keyedStatement } from '../../postgres/keyed.ts'
import { statement } from '../../postgres/statement.ts'
import type { KeyRole, KeyScopeKind } from './access-keys.ts'
import { isInEffect } from './members.ts'

/** A caller, with everything that determines its access. */
export type Caller = {
  /**
   * The kind and the id, such as `user:<id>`. Identifies the caller in rate limits, the log and events. This is
   * not an access key.
   */
  key: string
} & (
  | {
      kind: 'user'
      id: string
      email: string
      isOperator: boolean
      familyId: string
      /** True if this session was started or confirmed with a second factor. */
      hasSecondFactor: boolean
      memberships: Map<string, Membership>
      expiresAt: number
    }
  | (KeyCaller & {
      kind: 'access_key'
      role: KeyRole
      /** Null for a key of the organization. */
      projectId: string | null
      organizationId: string
      /** True if the organization is suspended. */
      isSuspended: boolean
    })
  | (KeyCaller & { kind: 'operator_key' })
)

interface KeyCaller {
  id: string
  /** The user who created the key, directly or with another key. */
  createdBy: string | null
  /** The addresses from which the key works; null for any. */
  allowedFrom: BlockList | null
  expiresAt: number
}

interface Membership {
  role: Role
  /** True if the organization is suspended. */
  isSuspended: boolean
  /** True if the organization requires a second factor and this session has none. */
  lacksSecondFactor: boolean
}

export interface ProjectScope {
  projectId: string
  organizationId: string
  paymentState: PaymentState
}

// The keys that a suspended user created do not work.
const keyByDigest = keyedStatement<
  {
    id: string
    kind: KeyScopeKind
    role: KeyRole
    project_id: string | null
    organization_id: string
    created_by: string | null
    allowed_cidrs: string[]
    is_suspended: boolean
    remaining_ms: number | null
    /** True if this use is recorded: the last recorded use was more than a minute ago. */
    is_use_due: boolean
  },
  { digest: string }
>(
  'access_key_by_hash',
  `SELECT w.digest, k.id, k.kind, k.role, k.project_id, o.id AS organization_id, k.created_by, k.allowed_cidrs,
          o.suspended_at IS NOT NULL AS is_suspended,
          (extract(epoch FROM k.expires_at - (SELECT now FROM moment)) * 1000)::float8 AS remaining_ms,
          coalesce(k.last_used_at < (SELECT now FROM moment) - interval '1 minute', true) AS is_use_due
   FROM unnest(:digest::text[]) AS w (digest)
   JOIN access_keys k ON k.secret_hash = decode(w.digest, 'base64')
   LEFT JOIN projects p ON p.id = k.project_id
   LEFT JOIN organizations o ON o.id = coalesce(k.organization_id, p.organization_id)
   LEFT JOIN users u ON u.id = k.created_by
   WHERE k.revoked_at IS NULL
     AND (k.expires_at IS NULL OR k.expires_at > (SELECT now FROM moment)) AND p.deleted_at IS NULL AND u.suspended_at IS NULL`,
)

// A key's row is updated at most once a minute, so that not every request writes.
const recordKeyUse = statement<never, { id: string }>(
  'access_key_used',
  `UPDATE access_keys SET last_used_at = slipway_now()
   WHERE id = :id AND (last_used_at IS NULL OR last_used_at < slipway_now() - interval '1 minute')`,
)

const userByDigest = keyedStatement<
  {
    id: string
    email: string
    is_operator: boolean
    family_id: string
    has_second_factor: boolean
    remaining_ms: number
    memberships: { organization_id: string; role: Role; is_suspended: boolean; requires_totp: boolean }[]
  },
  { digest: string }
>(
  'user_by_access_token',
  `SELECT w.digest, u.id, u.email, u.is_operator, t.family_id, f.has_second_factor,
          (extract(epoch FROM t.expires_at - sign_in_now()) * 1000)::float8 AS remaining_ms,
          coalesce((SELECT jsonb_agg(jsonb_build_object('organization_id', m.organization_id, 'role', m.role,
                                                        'is_suspended', o.suspended_at IS NOT NULL, 'requires_totp', o.require_totp))
                    FROM memberships m JOIN organizations o ON o.id = m.organization_id
                    WHERE m.user_id = u.id AND ${isInEffect}), '[]') AS memberships
   FROM unnest(:digest::text[]) AS w (digest)
   JOIN access_tokens t ON t.token_hash = decode(w.digest, 'base64')
   JOIN token_families f ON f.id = t.family_id JOIN users u ON u.id = f.user_id
   WHERE t.expires_at > sign_in_now()
     AND f.revoked_at IS NULL AND f.expires_at > sign_in_now() AND u.suspended_at IS NULL`,
)

const scopeOfProject = keyedStatement<
  { organization_id: string; payment_state: ProjectScope['paymentState'] },
  { projectId: string }
>(
  'project_scope',
  `SELECT p.id AS "projectId", p.organization_id, o.payment_state
   FROM projects p JOIN organizations o ON o.id = p.organization_id
   WHERE p.id = ANY (:projectId::uuid[]) AND p.deleted_at IS NULL`,
)

/** With `recordsUse`, records the time of this use. */
export async function findKeyCaller(
  db: Queryable,
  digest: string,
  recordsUse: boolean,
): Promise<Caller | null> {
  const row = await keyByDigest.one(db, { digest })
  if (!row) return null
  if (recordsUse && row.is_use_due) recordKeyUse.run(db, { id: row.id }).catch(() => {})
  const expiresAt = Date.now() + (row.remaining_ms ?? Number.POSITIVE_INFINITY)
  const common: KeyCaller = {
    id: row.id,
    createdBy: row.created_by,
    allowedFrom: row.allowed_cidrs.length > 0 ? blockListOf(row.allowed_cidrs) : null,
    expiresAt,
  }
  if (row.kind === 'operator') return { ...common, kind: 'operator_key', key: `operator_key:${row.id}` }
  return {
    ...common,
    kind: 'access_key',
    key: `access_key:${row.id}`,
    role: row.role,
    projectId: row.project_id,
    organizationId: row.organization_id,
    isSuspended: row.is_suspended,
  }
}

export async function findTokenCaller(db: Queryable, digest: string): Promise<Caller | null> {
  const row = await userByDigest.one(db, { digest })
  if (!row) return null
  return {
    kind: 'user',
    key: `user:${row.id}`,
    id: row.id,
    email: row.email,
    isOperator: row.is_operator,
    familyId: row.family_id,
    hasSecondFactor: row.has_second_factor,
    memberships: new Map(
      row.memberships.map((m) => [
        m.organization_id,
        {
          role: m.role,
          isSuspended: m.is_suspended,
          lacksSecondFactor: m.requires_totp && !row.has_second_factor,
        },
      ]),
    ),
    expiresAt: Date.now() + row.remaining_ms,
  }
}

export async function findProjectScope(db: Queryable, projectId: string): Promise<ProjectScope | null> {
  const row = await scopeOfProject.one(db, { projectId })
  return row ? { projectId, organizationId: row.organization_id, paymentState: row.payment_state } : null
}
