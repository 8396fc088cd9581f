import { type Queryable, statement, type Tx } from '../database.ts'

export interface UserRow {
  id: string
  email: string
  /** Null while only invited. */
  password_hash: string | null
  is_operator: boolean
  suspended_at: Date | null
  created_at: Date
}

export const findUserByEmail = statement<UserRow, [email: string]>(
  'user_by_email',
  'SELECT * FROM users WHERE email = $1',
).one

const share = statement<UserRow, [string]>('user_share', 'SELECT * FROM users WHERE id = $1 FOR SHARE')

const lock = statement<UserRow, [string]>('user_lock', 'SELECT * FROM users WHERE id = $1 FOR UPDATE')

// No row when the address is taken, also by a transaction that is not done yet.
const insert = statement<UserRow, [string, string, string | null, boolean]>(
  'user_insert',
  `INSERT INTO users (id, email, password_hash, is_operator) VALUES ($1, $2, $3, $4)
   ON CONFLICT (email) DO NOTHING RETURNING *`,
)

const setPassword = statement<never, [string, string]>(
  'user_set_password',
  'UPDATE users SET password_hash = $2 WHERE id = $1',
)

const makeOperator = statement<UserRow, [string]>(
  'user_make_operator',
  'UPDATE users SET is_operator = true WHERE id = $1 RETURNING *',
)

const suspend = statement<UserRow, [string, boolean]>(
  'user_suspend',
  `UPDATE users SET suspended_at = CASE WHEN $2 THEN coalesce(suspended_at, slipway_now()) END
   WHERE id = $1 RETURNING *`,
)

const list = statement<UserRow, [string | null, number]>(
  'user_list',
  'SELECT * FROM users WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2',
)

/** As it is now, and it stays so until the transaction ends: no password change or suspension gets in between. */
export const holdUser = (tx: Tx, id: string) => share.one(tx, id)

/** For what decides by the user's state and then changes it or what hangs on it. */
export const lockUser = (tx: Tx, id: string) => lock.one(tx, id)

export interface NewUser {
  id: string
  email: string
  passwordHash: string | null
  isOperator: boolean
}

/** Undefined when the e-mail address is taken. */
export const insertUser = (tx: Tx, user: NewUser) =>
  insert.one(tx, user.id, user.email, user.passwordHash, user.isOperator)

export const setUserPassword = (tx: Tx, id: string, passwordHash: string) =>
  setPassword.run(tx, id, passwordHash)

export const makeUserOperator = (tx: Tx, id: string) => makeOperator.one(tx, id)

export const suspendUser = (tx: Tx, id: string, isSuspended: boolean) => suspend.one(tx, id, isSuspended)

export const listUsers = (db: Queryable, beforeId: string | null, limit: number) =>
  list.all(db, beforeId, limit)
