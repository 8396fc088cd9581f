import type { Role } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { isBefore, type PageParams, statement } from '../../postgres/statement.ts'

export type KeyScopeKind = 'project' | 'organization' | 'operator'
export type KeyRole = 'read' | 'write' | Role

export interface AccessKeyRow {
  id: string
  kind: KeyScopeKind
  project_id: string | null
  organization_id: string | null
  name: string
  role: KeyRole
  prefix: string
  created_by: string | null
  /** The key that created this key; null if a signed-in user created it, or if the creator is not known. */
  parent_id: string | null
  created_at: Date
  expires_at: Date | null
  last_used_at: Date | null
  allowed_cidrs: string[]
  /** The access key, encrypted with the master key. Null unless it is a signing key. */
  signing_sealed: Buffer | null
}

/** Returns undefined and inserts nothing if the key would already be expired. */
export const insertAccessKey = statement<AccessKeyRow, NewAccessKeyRow, Tx>(
  'access_key_insert',
  `INSERT INTO access_keys (id, kind, project_id, organization_id, name, role, prefix, secret_hash, created_by,
                            parent_id, expires_at, allowed_cidrs, signing_sealed)
   SELECT :id, :kind, :projectId, :organizationId, :name, :role, :prefix, :secretHash, :createdBy, :parentId,
          :expiresAt::timestamptz, :allowedCidrs::text[], :signingSealed::bytea
   WHERE :expiresAt::timestamptz IS NULL OR :expiresAt::timestamptz > slipway_now()
   RETURNING *`,
).one

/** A key has one of these members; an operator's key has neither. */
export interface KeyScope {
  projectId: string | null
  organizationId: string | null
}

export const operatorScope: KeyScope = { projectId: null, organizationId: null }

export const listAccessKeys = statement<AccessKeyRow, { projectId: string } & PageParams>(
  'access_key_list',
  `SELECT * FROM access_keys
   WHERE project_id = :projectId AND revoked_at IS NULL AND ${isBefore('id')}
   ORDER BY id DESC LIMIT :limit`,
).allBy('projectId', 'beforeId', 'limit')

export const listOrganizationKeys = statement<AccessKeyRow, { organizationId: string } & PageParams>(
  'access_key_list_of_organization',
  `SELECT * FROM access_keys
   WHERE kind = 'organization' AND organization_id = :organizationId AND revoked_at IS NULL
     AND ${isBefore('id')}
   ORDER BY id DESC LIMIT :limit`,
).allBy('organizationId', 'beforeId', 'limit')

export const listOperatorKeys = statement<AccessKeyRow, PageParams>(
  'access_key_list_of_operators',
  `SELECT * FROM access_keys
   WHERE kind = 'operator' AND revoked_at IS NULL AND ${isBefore('id')}
   ORDER BY id DESC LIMIT :limit`,
).allBy('beforeId', 'limit')

const revoke = statement<AccessKeyRow, KeyScope & { id: string }>(
  'access_key_revoke',
  `UPDATE access_keys SET revoked_at = slipway_now()
   WHERE id = :id AND project_id IS NOT DISTINCT FROM :projectId::uuid
     AND organization_id IS NOT DISTINCT FROM :organizationId::uuid AND revoked_at IS NULL RETURNING *`,
)

/**
 * Returns undefined if the key is revoked. A revocation waits until the transaction that holds this lock has
 * ended.
 */
export const lockParentKey = statement<AccessKeyRow, { id: string }, Tx>(
  'access_key_lock_parent',
  'SELECT * FROM access_keys WHERE id = :id AND revoked_at IS NULL FOR SHARE',
).oneBy('id')

/**
 * Revokes the keys that this key created, directly or through other keys, even if some of those keys are
 * already revoked. Misses keys that are created while the statement waits for a lock. OFFSET and the array make
 * PostgreSQL look up the keys one by one, even without statistics.
 */
export const revokeDescendantsOnce = statement<AccessKeyRow, { id: string }, Tx>(
  'access_keys_revoke_descendants',
  `WITH RECURSIVE descendants AS (
     SELECT id FROM access_keys WHERE parent_id = :id
     UNION ALL
     SELECT k.id FROM descendants d, LATERAL (SELECT id FROM access_keys WHERE parent_id = d.id OFFSET 0) k)
   UPDATE access_keys SET revoked_at = slipway_now()
   WHERE id = ANY (ARRAY(SELECT id FROM descendants)) AND revoked_at IS NULL RETURNING *`,
).allBy('id')

export const revokeAccessKeysOfProject = statement<never, { projectId: string }, Tx>(
  'access_keys_revoke_of_project',
  'UPDATE access_keys SET revoked_at = slipway_now() WHERE project_id = :projectId AND revoked_at IS NULL',
).runBy('projectId')

const ofUserInProjects = `k.kind = 'project' AND k.created_by = :userId AND k.revoked_at IS NULL
  AND k.project_id IN (SELECT id FROM projects WHERE organization_id = :organizationId)`

/** Lists the keys that the user created for projects of the organization. */
export const listProjectKeysOfUser = statement<AccessKeyRow, { organizationId: string; userId: string }>(
  'access_key_list_of_user',
  `SELECT k.* FROM access_keys k WHERE ${ofUserInProjects} ORDER BY k.id DESC`,
).allBy('organizationId', 'userId')

export const revokeProjectKeysOfUser = statement<
  AccessKeyRow,
  { organizationId: string; userId: string },
  Tx
>(
  'access_keys_revoke_of_user',
  `UPDATE access_keys k SET revoked_at = slipway_now() WHERE ${ofUserInProjects} RETURNING k.*`,
).allBy('organizationId', 'userId')

/** Revokes the keys that the user created for the organization, except those with a role in `kept`. */
export const revokeOrganizationKeysOfUser = statement<
  AccessKeyRow,
  { organizationId: string; userId: string; kept: readonly Role[] },
  Tx
>(
  'access_keys_revoke_above',
  `UPDATE access_keys SET revoked_at = slipway_now()
   WHERE kind = 'organization' AND organization_id = :organizationId AND created_by = :userId
     AND role <> ALL (:kept::text[]) AND revoked_at IS NULL RETURNING *`,
).allBy('organizationId', 'userId', 'kept')

export const revokeOperatorKeysOfUser = statement<AccessKeyRow, { userId: string }, Tx>(
  'access_keys_revoke_of_operator',
  `UPDATE access_keys SET revoked_at = slipway_now()
   WHERE kind = 'operator' AND created_by = :userId AND revoked_at IS NULL RETURNING *`,
).allBy('userId')

interface NewAccessKeyRow extends KeyScope {
  id: string
  kind: KeyScopeKind
  name: string
  role: KeyRole
  prefix: string
  secretHash: Buffer
  createdBy: string | null
  parentId: string | null
  expiresAt: Date | null
  allowedCidrs: string[]
  signingSealed: Buffer | null
}

/**
 * Finds a signing key by its access key id. The caller and the expiry are checked afterwards, as for every
 * key.
 */
export const findSigningKey = statement<{ signing_sealed: Buffer }, { prefix: string }>(
  'access_key_find_signing',
  `SELECT signing_sealed FROM access_keys
   WHERE prefix = :prefix AND signing_sealed IS NOT NULL AND revoked_at IS NULL`,
).oneBy('prefix')

export const revokeAccessKey = (tx: Tx, scope: KeyScope, id: string) => revoke.one(tx, { ...scope, id })
