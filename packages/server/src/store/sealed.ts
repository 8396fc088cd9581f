import type { Queryable, Tx } from './database.ts'
import { type Statement, statement } from './statement.ts'

interface SealedRow {
  id: string
  sealed: Buffer
}

interface SealedColumn {
  list: Statement<SealedRow, { after: string; most: number }>
  update: Statement<never, SealedRow>
}

// A page by id, with the rows held: what is sealed anew is what was read.
const sealedColumn = (table: string, column: string): SealedColumn => ({
  list: statement(
    `${table}_sealed_list`,
    `SELECT id, ${column} AS sealed FROM ${table} WHERE id > :after AND ${column} IS NOT NULL
     ORDER BY id LIMIT :most FOR NO KEY UPDATE`,
  ),
  update: statement(`${table}_sealed_update`, `UPDATE ${table} SET ${column} = :sealed WHERE id = :id`),
})

/** Everything that is kept sealed under the master key. */
export const sealedColumns = [
  sealedColumn('webhook_secrets', 'sealed'),
  sealedColumn('users', 'totp_sealed'),
  sealedColumn('mails', 'sealed'),
  sealedColumn('vms', 'ssh_host_key_sealed'),
]

const listPlain = statement<{ id: string; plain: string }, { most: number }>(
  'webhook_secrets_plain',
  'SELECT id, plain FROM webhook_secrets WHERE plain IS NOT NULL ORDER BY id LIMIT :most FOR UPDATE',
)

const sealPlain = statement<never, { id: string; sealed: Buffer }>(
  'webhook_secret_seal',
  'UPDATE webhook_secrets SET sealed = :sealed, plain = NULL WHERE id = :id',
)

const keyId = statement<{ id: string }>('secret_key_id', 'SELECT id FROM secret_key FOR SHARE')

const setKeyId = statement<never, { id: string }>(
  'secret_key_set',
  'INSERT INTO secret_key (id) VALUES (:id) ON CONFLICT (is_only) DO UPDATE SET id = excluded.id',
)

// What a version sealed that did not yet write down under which key.
const anySealed = statement<{ sealed: Buffer }>(
  'secret_key_sealed_before',
  `(SELECT totp_sealed AS sealed FROM users WHERE totp_sealed IS NOT NULL LIMIT 1)
   UNION ALL (SELECT sealed FROM mails LIMIT 1)`,
)

/** Returns the id of the key that this database's secrets are sealed under; undefined before the first start. */
export const findSecretKeyId = async (db: Queryable): Promise<string | undefined> => (await keyId.one(db))?.id
export const setSecretKeyId = (tx: Tx, id: string) => setKeyId.run(tx, { id })
export const findAnySealed = async (tx: Tx): Promise<Buffer | undefined> => (await anySealed.one(tx))?.sealed
export const listPlainWebhookSecrets = (tx: Tx, most: number) => listPlain.all(tx, { most })
export const sealPlainWebhookSecret = (tx: Tx, id: string, sealed: Buffer) =>
  sealPlain.run(tx, { id, sealed })
