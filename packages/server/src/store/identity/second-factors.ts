import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

const isSetUp = statement<{ is_set_up: boolean }, { userId: string }>(
  'totp_is_set_up',
  'SELECT totp_confirmed_at IS NOT NULL AS is_set_up FROM users WHERE id = :userId',
)

export const beginTotp = statement<never, { userId: string; sealed: Buffer }, Tx>(
  'totp_begin',
  'UPDATE users SET totp_sealed = :sealed, totp_confirmed_at = NULL, totp_last_step = 0 WHERE id = :userId',
).runBy('userId', 'sealed')

const confirm = statement<never, { userId: string }>(
  'totp_confirm',
  'UPDATE users SET totp_confirmed_at = slipway_now() WHERE id = :userId',
)

const remove = statement<never, { userId: string }>(
  'totp_remove',
  'UPDATE users SET totp_sealed = NULL, totp_confirmed_at = NULL, totp_last_step = 0 WHERE id = :userId',
)

// The condition ensures that a code works only once, even if two processes receive it.
const spend = statement<never, { userId: string; step: number }>(
  'totp_spend',
  'UPDATE users SET totp_last_step = :step WHERE id = :userId AND totp_last_step < :step',
)

const removeCodes = statement<never, { userId: string }>(
  'recovery_codes_delete',
  'DELETE FROM recovery_codes WHERE user_id = :userId',
)

const insertCodes = statement<never, { userId: string; hashes: Buffer[] }>(
  'recovery_codes_insert',
  'INSERT INTO recovery_codes (user_id, code_hash) SELECT :userId, unnest(:hashes::bytea[])',
)

const spendCode = statement<never, { userId: string; hash: Buffer }>(
  'recovery_code_spend',
  `UPDATE recovery_codes SET used_at = slipway_now()
   WHERE user_id = :userId AND code_hash = :hash AND used_at IS NULL`,
)

export const hasTotp = async (db: Queryable, userId: string): Promise<boolean> =>
  (await isSetUp.one(db, { userId }))?.is_set_up ?? false

/** Confirms the second factor, and replaces the recovery codes. */
export async function confirmTotp(tx: Tx, userId: string, hashes: Buffer[]): Promise<void> {
  await confirm.run(tx, { userId })
  await removeCodes.run(tx, { userId })
  await insertCodes.run(tx, { userId, hashes })
}

export async function removeTotp(tx: Tx, userId: string): Promise<void> {
  await remove.run(tx, { userId })
  await removeCodes.run(tx, { userId })
}

/** Returns false if this code or a later one was already used. */
export const spendTotpStep = async (tx: Tx, userId: string, step: number) =>
  (await spend.run(tx, { userId, step })) === 1

export const spendRecoveryCode = async (tx: Tx, userId: string, hash: Buffer) =>
  (await spendCode.run(tx, { userId, hash })) === 1
