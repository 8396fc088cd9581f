import type { Queryable, Tx } from '../database.ts'
import { isBefore, statement } from '../statement.ts'

export interface UserRow {
  id: string
  email: string
  /** Null while only invited. */
  password_hash: string | null
  is_operator: boolean
  suspended_at: Date | null
  created_at: Date
}

const byEmail = statement<UserRow, { email: string }>(
  'user_by_email',
  'SELECT * FROM users WHERE email = :email',
)

const share = statement<UserRow, { id: string }>('user_share', 'SELECT * FROM users WHERE id = :id FOR SHARE')

const lock = statement<UserRow, { id: string }>('user_lock', 'SELECT * FROM users WHERE id = :id FOR UPDATE')

// There is no row when the address is taken, also by a transaction that is not done yet.
const insert = statement<UserRow, NewUser>(
  'user_insert',
  `INSERT INTO users (id, email, password_hash, is_operator) VALUES (:id, :email, :passwordHash, :isOperator)
   ON CONFLICT (email) DO NOTHING RETURNING *`,
)

const setPassword = statement<never, { id: string; passwordHash: string }>(
  'user_set_password',
  'UPDATE users SET password_hash = :passwordHash WHERE id = :id',
)

const makeOperator = statement<UserRow, { id: string }>(
  'user_make_operator',
  'UPDATE users SET is_operator = true WHERE id = :id RETURNING *',
)

const suspend = statement<UserRow, { id: string; isSuspended: boolean }>(
  'user_suspend',
  `UPDATE users SET suspended_at = CASE WHEN :isSuspended THEN coalesce(suspended_at, slipway_now()) END
   WHERE id = :id RETURNING *`,
)

const list = statement<UserRow, { beforeId: string | null; limit: number }>(
  'user_list',
  `SELECT * FROM users WHERE ${isBefore('id')} ORDER BY id DESC LIMIT :limit`,
)

export const findUserByEmail = (db: Queryable, email: string) => byEmail.one(db, { email })

/** Keeps the user as it is until the transaction ends: no password change or suspension gets in between. */
export const holdUser = (tx: Tx, id: string) => share.one(tx, { id })

/** Locks the user for what decides by its state and then changes it or what hangs on it. */
export const lockUser = (tx: Tx, id: string) => lock.one(tx, { id })

export interface NewUser {
  id: string
  email: string
  passwordHash: string | null
  isOperator: boolean
}

/** Returns undefined when the e-mail address is taken. */
export const insertUser = (tx: Tx, user: NewUser) => insert.one(tx, user)

export const setUserPassword = (tx: Tx, id: string, passwordHash: string) =>
  setPassword.run(tx, { id, passwordHash })

export const makeUserOperator = (tx: Tx, id: string) => makeOperator.one(tx, { id })

export const suspendUser = (tx: Tx, id: string, isSuspended: boolean) => suspend.one(tx, { id, isSuspended })

export const listUsers = (db: Queryable, beforeId: string | null, limit: number) =>
  list.all(db, { beforeId, limit })
