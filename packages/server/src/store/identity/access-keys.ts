import type { Role } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { isBefore, type PageParams, statement } from '../../postgres/statement.ts'

export type KeyKind = 'project' | 'organization' | 'operator'
export type KeyRole = 'read' | 'write' | Role

export interface AccessKeyRow {
  id: string
  kind: KeyKind
  project_id: string | null
  organization_id: string | null
  name: string
  role: KeyRole
  prefix: string
  created_by: string | null
  created_at: Date
  expires_at: Date | null
  last_used_at: Date | null
  allowed_cidrs: string[]
}

// It inserts nothing if the key would already be expired.
const insert = statement<AccessKeyRow, NewAccessKeyRow>(
  'access_key_insert',
  `INSERT INTO access_keys (id, kind, project_id, organization_id, name, role, prefix, secret_hash, created_by,
                            expires_at, allowed_cidrs)
   SELECT :id, :kind, :projectId, :organizationId, :name, :role, :prefix, :secretHash, :createdBy,
          :expiresAt::timestamptz, :allowedCidrs::text[]
   WHERE :expiresAt::timestamptz IS NULL OR :expiresAt::timestamptz > slipway_now()
   RETURNING *`,
)

/** A key has one of these; an operator's key has neither. */
export interface KeyScope {
  projectId: string | null
  organizationId: string | null
}

export const operatorScope: KeyScope = { projectId: null, organizationId: null }

const listOfProject = statement<AccessKeyRow, { projectId: string } & PageParams>(
  'access_key_list',
  `SELECT * FROM access_keys
   WHERE project_id = :projectId AND revoked_at IS NULL AND ${isBefore('id')}
   ORDER BY id DESC LIMIT :limit`,
)

const listOfOrganization = statement<AccessKeyRow, { organizationId: string } & PageParams>(
  'access_key_list_of_organization',
  `SELECT * FROM access_keys
   WHERE kind = 'organization' AND organization_id = :organizationId AND revoked_at IS NULL
     AND ${isBefore('id')}
   ORDER BY id DESC LIMIT :limit`,
)

const listOfOperators = statement<AccessKeyRow, PageParams>(
  'access_key_list_of_operators',
  `SELECT * FROM access_keys
   WHERE kind = 'operator' AND revoked_at IS NULL AND ${isBefore('id')}
   ORDER BY id DESC LIMIT :limit`,
)

const revoke = statement<AccessKeyRow, KeyScope & { id: string }>(
  'access_key_revoke',
  `UPDATE access_keys SET revoked_at = slipway_now()
   WHERE id = :id AND project_id IS NOT DISTINCT FROM :projectId::uuid
     AND organization_id IS NOT DISTINCT FROM :organizationId::uuid AND revoked_at IS NULL RETURNING *`,
)

const revokeOfProject = statement<never, { projectId: string }>(
  'access_keys_revoke_of_project',
  'UPDATE access_keys SET revoked_at = slipway_now() WHERE project_id = :projectId AND revoked_at IS NULL',
)

const ofUserInProjects = `k.kind = 'project' AND k.created_by = :userId AND k.revoked_at IS NULL
  AND k.project_id IN (SELECT id FROM projects WHERE organization_id = :organizationId)`

const listOfUser = statement<AccessKeyRow, { organizationId: string; userId: string }>(
  'access_key_list_of_user',
  `SELECT k.* FROM access_keys k WHERE ${ofUserInProjects} ORDER BY k.id DESC`,
)

const revokeOfUser = statement<AccessKeyRow, { organizationId: string; userId: string }>(
  'access_keys_revoke_of_user',
  `UPDATE access_keys k SET revoked_at = slipway_now() WHERE ${ofUserInProjects} RETURNING k.*`,
)

const revokeOrganizationKeys = statement<
  AccessKeyRow,
  { organizationId: string; userId: string; kept: readonly Role[] }
>(
  'access_keys_revoke_above',
  `UPDATE access_keys SET revoked_at = slipway_now()
   WHERE kind = 'organization' AND organization_id = :organizationId AND created_by = :userId
     AND role <> ALL (:kept::text[]) AND revoked_at IS NULL RETURNING *`,
)

const revokeOperatorKeys = statement<AccessKeyRow, { userId: string }>(
  'access_keys_revoke_of_operator',
  `UPDATE access_keys SET revoked_at = slipway_now()
   WHERE kind = 'operator' AND created_by = :userId AND revoked_at IS NULL RETURNING *`,
)

interface NewAccessKeyRow extends KeyScope {
  id: string
  kind: KeyKind
  name: string
  role: KeyRole
  prefix: string
  secretHash: Buffer
  createdBy: string | null
  expiresAt: Date | null
  allowedCidrs: string[]
}

/** Returns undefined if its expiry has passed already. */
export const insertAccessKey = (tx: Tx, key: NewAccessKeyRow) => insert.one(tx, key)

export const listAccessKeys = (db: Queryable, projectId: string, beforeId: string | null, limit: number) =>
  listOfProject.all(db, { projectId, beforeId, limit })

export const listOrganizationKeys = (
  db: Queryable,
  organizationId: string,
  beforeId: string | null,
  limit: number,
) => listOfOrganization.all(db, { organizationId, beforeId, limit })

export const listOperatorKeys = (db: Queryable, beforeId: string | null, limit: number) =>
  listOfOperators.all(db, { beforeId, limit })

export const revokeAccessKey = (tx: Tx, scope: KeyScope, id: string) => revoke.one(tx, { ...scope, id })

export const revokeAccessKeysOfProject = (tx: Tx, projectId: string) => revokeOfProject.run(tx, { projectId })

/** Lists the project keys in the organization that the user created. */
export const listProjectKeysOfUser = (db: Queryable, organizationId: string, userId: string) =>
  listOfUser.all(db, { organizationId, userId })

export const revokeProjectKeysOfUser = (tx: Tx, organizationId: string, userId: string) =>
  revokeOfUser.all(tx, { organizationId, userId })

/** Revokes the keys of the organization that the user created, except those with a role in `kept`. */
export const revokeOrganizationKeysOfUser = (
  tx: Tx,
  organizationId: string,
  userId: string,
  kept: readonly Role[],
) => revokeOrganizationKeys.all(tx, { organizationId, userId, kept })

export const revokeOperatorKeysOfUser = (tx: Tx, userId: string) => revokeOperatorKeys.all(tx, { userId })
