import type { Tx } from '../../postgres/database.ts'
import { isBefore, type PageParams, statement } from '../../postgres/statement.ts'

export interface SshKeyRow {
  id: string
  project_id: string
  name: string
  public_key: string
  type: string
  fingerprint: string
  created_at: Date
}

export const listSshKeys = statement<SshKeyRow, { projectId: string } & PageParams>(
  'ssh_key_list',
  `SELECT * FROM ssh_keys WHERE project_id = :projectId AND ${isBefore('id')} ORDER BY id DESC LIMIT :limit`,
).allBy('projectId', 'beforeId', 'limit')

/** Returns the keys that exist, in any order. */
export const findSshKeys = statement<SshKeyRow, { projectId: string; ids: string[] }>(
  'ssh_key_several',
  'SELECT * FROM ssh_keys WHERE project_id = :projectId AND id = ANY (:ids)',
).allBy('projectId', 'ids')

const insert = statement<SshKeyRow, NewSshKey>(
  'ssh_key_insert',
  `INSERT INTO ssh_keys (id, project_id, name, public_key, type, fingerprint)
   VALUES (:id, :projectId, :name, :publicKey, :type, :fingerprint) RETURNING *`,
)

export const deleteSshKey = statement<SshKeyRow, { projectId: string; id: string }, Tx>(
  'ssh_key_delete',
  'DELETE FROM ssh_keys WHERE project_id = :projectId AND id = :id RETURNING *',
).oneBy('projectId', 'id')

export const deleteSshKeysOfProject = statement<never, { projectId: string }, Tx>(
  'ssh_key_delete_of_project',
  'DELETE FROM ssh_keys WHERE project_id = :projectId',
).runBy('projectId')

interface NewSshKey {
  id: string
  projectId: string
  name: string
  publicKey: string
  type: string
  fingerprint: string
}

/** Violates `ssh_keys_project_id_name_key` if the name is taken. */
export const insertSshKey = async (tx: Tx, key: NewSshKey): Promise<SshKeyRow> => (await insert.one(tx, key))!
