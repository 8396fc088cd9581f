import type { Queryable, Tx } from '../database.ts'
import { isBefore, statement } from '../statement.ts'

export interface AccessKeyRow {
  id: string
  kind: 'project' | 'operator'
  project_id: string | null
  name: string
  role: 'read' | 'write'
  prefix: string
  created_at: Date
  expires_at: Date | null
  last_used_at: Date | null
}

// There is no row when the key would be born expired.
const insert = statement<AccessKeyRow, NewAccessKeyRow>(
  'access_key_insert',
  `INSERT INTO access_keys (id, kind, project_id, name, role, prefix, secret_hash, expires_at)
   SELECT :id, :kind, :projectId, :name, :role, :prefix, :secretHash, :expiresAt::timestamptz
   WHERE :expiresAt::timestamptz IS NULL OR :expiresAt::timestamptz > slipway_now()
   RETURNING *`,
)

const list = statement<AccessKeyRow, { projectId: string; beforeId: string | null; limit: number }>(
  'access_key_list',
  `SELECT * FROM access_keys
   WHERE project_id = :projectId AND revoked_at IS NULL AND ${isBefore('id')}
   ORDER BY id DESC LIMIT :limit`,
)

const revoke = statement<AccessKeyRow, { projectId: string; id: string }>(
  'access_key_revoke',
  `UPDATE access_keys SET revoked_at = slipway_now()
   WHERE project_id = :projectId AND id = :id AND revoked_at IS NULL RETURNING *`,
)

const revokeOfProject = statement<never, { projectId: string }>(
  'access_keys_revoke_of_project',
  'UPDATE access_keys SET revoked_at = slipway_now() WHERE project_id = :projectId AND revoked_at IS NULL',
)

export interface NewAccessKeyRow {
  id: string
  kind: 'project' | 'operator'
  projectId: string | null
  name: string
  role: 'read' | 'write'
  prefix: string
  secretHash: Buffer
  expiresAt: Date | null
}

/** Returns undefined when its expiry has passed already. */
export const insertAccessKey = (tx: Tx, key: NewAccessKeyRow) => insert.one(tx, key)

export const listAccessKeys = (db: Queryable, projectId: string, beforeId: string | null, limit: number) =>
  list.all(db, { projectId, beforeId, limit })

export const revokeAccessKey = (tx: Tx, projectId: string, id: string) => revoke.one(tx, { projectId, id })

export const revokeAccessKeysOfProject = (tx: Tx, projectId: string) => revokeOfProject.run(tx, { projectId })
