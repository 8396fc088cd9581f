import type { Role } from '@slipway/contract'
import type { Queryable } from '../database.ts'
import { statement } from '../statement.ts'

/** Who calls, with everything that deciding about access needs. */
export type Caller =
  | {
      kind: 'user'
      id: string
      email: string
      isOperator: boolean
      familyId: string
      memberships: Map<string, Role>
      expiresAt: number
    }
  | {
      kind: 'access_key'
      id: string
      role: 'read' | 'write'
      projectId: string
      organizationId: string
      expiresAt: number
    }
  | { kind: 'operator_key'; id: string; expiresAt: number }

export interface ProjectScope {
  projectId: string
  organizationId: string
  paymentState: 'never' | 'active' | 'declined' | 'removed'
}

const keyByHash = statement<
  {
    id: string
    kind: 'project' | 'operator'
    role: 'read' | 'write'
    project_id: string
    organization_id: string
    remaining_ms: number | null
    is_use_due: boolean
  },
  { secretHash: Buffer }
>(
  'access_key_by_hash',
  `SELECT k.id, k.kind, k.role, k.project_id, p.organization_id,
          (extract(epoch FROM k.expires_at - slipway_now()) * 1000)::float8 AS remaining_ms,
          coalesce(k.last_used_at < slipway_now() - interval '1 minute', true) AS is_use_due
   FROM access_keys k LEFT JOIN projects p ON p.id = k.project_id LEFT JOIN organizations o ON o.id = p.organization_id
   WHERE k.secret_hash = :secretHash AND k.revoked_at IS NULL
     AND (k.expires_at IS NULL OR k.expires_at > slipway_now()) AND p.deleted_at IS NULL AND o.suspended_at IS NULL`,
)

// A key is written at most once a minute, so that use does not become writing.
const keyUsed = statement<never, { id: string }>(
  'access_key_used',
  `UPDATE access_keys SET last_used_at = slipway_now()
   WHERE id = :id AND (last_used_at IS NULL OR last_used_at < slipway_now() - interval '1 minute')`,
)

const userByToken = statement<
  {
    id: string
    email: string
    is_operator: boolean
    family_id: string
    remaining_ms: number
    memberships: { organization_id: string; role: Role }[]
  },
  { tokenHash: Buffer }
>(
  'user_by_access_token',
  `SELECT u.id, u.email, u.is_operator, t.family_id,
          (extract(epoch FROM t.expires_at - slipway_now()) * 1000)::float8 AS remaining_ms,
          coalesce((SELECT jsonb_agg(jsonb_build_object('organization_id', m.organization_id, 'role', m.role))
                    FROM memberships m JOIN organizations o ON o.id = m.organization_id
                    WHERE m.user_id = u.id AND o.suspended_at IS NULL), '[]') AS memberships
   FROM access_tokens t JOIN token_families f ON f.id = t.family_id JOIN users u ON u.id = f.user_id
   WHERE t.token_hash = :tokenHash AND t.expires_at > slipway_now()
     AND f.revoked_at IS NULL AND u.suspended_at IS NULL`,
)

const scopeOfProject = statement<
  { organization_id: string; payment_state: ProjectScope['paymentState'] },
  { projectId: string }
>(
  'project_scope',
  `SELECT p.organization_id, o.payment_state FROM projects p JOIN organizations o ON o.id = p.organization_id
   WHERE p.id = :projectId AND p.deleted_at IS NULL`,
)

export async function findKeyCaller(db: Queryable, secretHash: Buffer): Promise<Caller | null> {
  const row = await keyByHash.one(db, { secretHash })
  if (!row) return null
  if (row.is_use_due) keyUsed.run(db, { id: row.id }).catch(() => {})
  const expiresAt = Date.now() + (row.remaining_ms ?? Number.POSITIVE_INFINITY)
  if (row.kind === 'operator') return { kind: 'operator_key', id: row.id, expiresAt }
  return {
    kind: 'access_key',
    id: row.id,
    role: row.role,
    projectId: row.project_id,
    organizationId: row.organization_id,
    expiresAt,
  }
}

export async function findTokenCaller(db: Queryable, tokenHash: Buffer): Promise<Caller | null> {
  const row = await userByToken.one(db, { tokenHash })
  if (!row) return null
  return {
    kind: 'user',
    id: row.id,
    email: row.email,
    isOperator: row.is_operator,
    familyId: row.family_id,
    memberships: new Map(row.memberships.map((m) => [m.organization_id, m.role])),
    expiresAt: Date.now() + row.remaining_ms,
  }
}

export async function findProjectScope(db: Queryable, projectId: string): Promise<ProjectScope | null> {
  const row = await scopeOfProject.one(db, { projectId })
  return row ? { projectId, organizationId: row.organization_id, paymentState: row.payment_state } : null
}
