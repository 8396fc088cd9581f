import type { Queryable, Tx } from '../../postgres/database.ts'
import { type Statement, statement } from '../../postgres/statement.ts'

interface SealedRow {
  id: string
  sealed: Buffer
}

interface SealedColumn {
  list: Statement<SealedRow, { after: string; limit: number }>
  update: Statement<never, SealedRow>
}

// Reads a page of rows by id and locks them, so that no other transaction changes a secret before it is
// sealed again.
const sealedColumn = (table: string, column: string): SealedColumn => ({
  list: statement(
    `${table}_sealed_list`,
    `SELECT id, ${column} AS sealed FROM ${table} WHERE id > :after AND ${column} IS NOT NULL
     ORDER BY id LIMIT :limit FOR NO KEY UPDATE`,
  ),
  update: statement(`${table}_sealed_update`, `UPDATE ${table} SET ${column} = :sealed WHERE id = :id`),
})

/** All columns that are sealed with the master key. */
export const sealedColumns = [
  sealedColumn('webhook_secrets', 'sealed'),
  sealedColumn('users', 'totp_sealed'),
  sealedColumn('mails', 'sealed'),
  sealedColumn('token_families', 'oidc_sealed'),
  sealedColumn('vms', 'ssh_host_key_sealed'),
  sealedColumn('access_keys', 'signing_sealed'),
]

const keyId = statement<{ id: string }>('secret_key_id', 'SELECT id FROM secret_key FOR SHARE')

export const setSecretKeyId = statement<never, { id: string }, Tx>(
  'secret_key_set',
  'INSERT INTO secret_key (id) VALUES (:id) ON CONFLICT (is_only) DO UPDATE SET id = excluded.id',
).runBy('id')

/** Returns the id of the key that the secrets of this database are sealed with; undefined before the first start. */
export const findSecretKeyId = async (db: Queryable): Promise<string | undefined> => (await keyId.one(db))?.id
