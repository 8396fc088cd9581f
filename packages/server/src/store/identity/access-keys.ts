import { type Queryable, statement, type Tx } from '../database.ts'

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

// No row when it would be born expired.
const insert = statement<
  AccessKeyRow,
  [string, 'project' | 'operator', string | null, string, 'read' | 'write', string, Buffer, Date | null]
>(
  'access_key_insert',
  `INSERT INTO access_keys (id, kind, project_id, name, role, prefix, secret_hash, expires_at)
   SELECT $1, $2, $3, $4, $5, $6, $7, $8::timestamptz WHERE $8::timestamptz IS NULL OR $8::timestamptz > slipway_now()
   RETURNING *`,
)

const list = statement<AccessKeyRow, [string, string | null, number]>(
  'access_key_list',
  `SELECT * FROM access_keys
   WHERE project_id = $1 AND revoked_at IS NULL AND ($2::uuid IS NULL OR id < $2)
   ORDER BY id DESC LIMIT $3`,
)

const revoke = statement<AccessKeyRow, [string, string]>(
  'access_key_revoke',
  `UPDATE access_keys SET revoked_at = slipway_now()
   WHERE project_id = $1 AND id = $2 AND revoked_at IS NULL RETURNING *`,
)

const revokeOfProject = statement<never, [string]>(
  'access_keys_revoke_of_project',
  'UPDATE access_keys SET revoked_at = slipway_now() WHERE project_id = $1 AND revoked_at IS NULL',
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

/** Undefined when its expiry has passed already. */
export const insertAccessKey = (tx: Tx, key: NewAccessKeyRow) =>
  insert.one(
    tx,
    key.id,
    key.kind,
    key.projectId,
    key.name,
    key.role,
    key.prefix,
    key.secretHash,
    key.expiresAt,
  )

export const listAccessKeys = (db: Queryable, projectId: string, beforeId: string | null, limit: number) =>
  list.all(db, projectId, beforeId, limit)

export const revokeAccessKey = (tx: Tx, projectId: string, id: string) => revoke.one(tx, projectId, id)

export const revokeAccessKeysOfProject = (tx: Tx, projectId: string) => revokeOfProject.run(tx, projectId)
