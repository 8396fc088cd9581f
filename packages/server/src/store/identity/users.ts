import type { Role } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { isBefore, type PageParams, statement } from '../../postgres/statement.ts'

export interface UserRow {
  id: string
  email: string
  /** Null for an account that uses single sign-on. */
  password_hash: string | null
  is_operator: boolean
  suspended_at: Date | null
  /** The encrypted TOTP secret. It is used only after it is confirmed. */
  totp_sealed: Buffer | null
  totp_confirmed_at: Date | null
  created_at: Date
  last_sign_in_at: Date | null
}

/** An account, or an invitation to create one. */
export interface PersonRow {
  id: string
  email: string
  is_operator: boolean
  suspended_at: Date | null
  is_invited?: boolean
  created_at: Date
  last_sign_in_at?: Date | null
  /** The role in the organization that the list or the invitation is for. */
  role?: Role | null
}

/** An account as operators see it. */
export interface UserAccountRow extends UserRow {
  sessions: number
  memberships: { organization_id: string; organization_name: string; role: Role }[]
}

/** Finds the password account with this e-mail address. Single sign-on accounts are found by their subject. */
export const findUserByEmail = statement<UserRow, { email: string }>(
  'user_by_email',
  'SELECT * FROM users WHERE email = :email AND password_hash IS NOT NULL',
).oneBy('email')

export const lockUser = statement<UserRow, { id: string }, Tx>(
  'user_lock',
  'SELECT * FROM users WHERE id = :id FOR UPDATE',
).oneBy('id')

/**
 * Returns undefined if the e-mail address is taken. Inserts nothing if a password account has the address,
 * and waits for a transaction that is creating one.
 */
export const insertUser = statement<UserRow, NewUser, Tx>(
  'user_insert',
  `INSERT INTO users (id, email, password_hash, is_operator) VALUES (:id, :email, :passwordHash, :isOperator)
   ON CONFLICT (email) WHERE password_hash IS NOT NULL DO NOTHING RETURNING *`,
).one

export const setUserPassword = statement<never, { id: string; passwordHash: string }, Tx>(
  'user_set_password',
  'UPDATE users SET password_hash = :passwordHash WHERE id = :id',
).runBy('id', 'passwordHash')

export const markEmailVerified = statement<never, { id: string }, Tx>(
  'user_verify_email',
  'UPDATE users SET email_verified_at = slipway_now() WHERE id = :id',
).runBy('id')

export const makeUserOperator = statement<UserRow, { id: string }, Tx>(
  'user_make_operator',
  'UPDATE users SET is_operator = true WHERE id = :id RETURNING *',
).oneBy('id')

export const revokeOperatorRole = statement<UserRow, { id: string }, Tx>(
  'user_take_operator_mark',
  'UPDATE users SET is_operator = false WHERE id = :id RETURNING *',
).oneBy('id')

const otherOperator = statement<never, { id: string }>(
  'user_other_operator',
  'SELECT FROM users WHERE is_operator AND suspended_at IS NULL AND id <> :id LIMIT 1',
)

export const suspendUser = statement<UserRow, { id: string; isSuspended: boolean }, Tx>(
  'user_suspend',
  `UPDATE users SET suspended_at = CASE WHEN :isSuspended THEN coalesce(suspended_at, slipway_now()) END
   WHERE id = :id RETURNING *`,
).oneBy('id', 'isSuspended')

export const recordSignIn = statement<never, { id: string }, Tx>(
  'user_record_sign_in',
  'UPDATE users SET last_sign_in_at = sign_in_now() WHERE id = :id',
).runBy('id')

export const findUserAccount = statement<UserAccountRow, { id: string }>(
  'user_account',
  `SELECT u.*,
          (SELECT count(*) FROM token_families f
           WHERE f.user_id = u.id AND f.revoked_at IS NULL AND f.expires_at > sign_in_now()) AS sessions,
          ARRAY(SELECT json_build_object('organization_id', o.id, 'organization_name', o.name, 'role', m.role)
                FROM memberships m JOIN organizations o ON o.id = m.organization_id
                WHERE m.user_id = u.id ORDER BY o.name, o.id) AS memberships
   FROM users u WHERE u.id = :id`,
).oneBy('id')

export const listUsers = statement<PersonRow, PageParams>(
  'user_list',
  `SELECT * FROM (
     (SELECT id, email, is_operator, suspended_at, false AS is_invited, created_at, last_sign_in_at FROM users
      WHERE ${isBefore('id')} ORDER BY id DESC LIMIT :limit)
     UNION ALL
     (SELECT id, email, is_operator, NULL::timestamptz, true, created_at, NULL::timestamptz FROM invitations
      WHERE ${isBefore('id')} ORDER BY id DESC LIMIT :limit)) p
   ORDER BY id DESC LIMIT :limit`,
).allBy('beforeId', 'limit')

/** Lists the members of an organization and the people who are invited. */
export const listUsersOfOrganization = statement<PersonRow, PageParams & { organizationId: string }>(
  'user_list_of_organization',
  `SELECT * FROM (
     (SELECT u.id, u.email, u.is_operator, u.suspended_at, false AS is_invited, u.created_at, u.last_sign_in_at, m.role
      FROM memberships m JOIN users u ON u.id = m.user_id
      WHERE m.organization_id = :organizationId AND ${isBefore('m.user_id')} ORDER BY m.user_id DESC LIMIT :limit)
     UNION ALL
     (SELECT id, email, is_operator, NULL::timestamptz, true, created_at, NULL::timestamptz, role FROM invitations
      WHERE organization_id = :organizationId AND ${isBefore('id')} ORDER BY id DESC LIMIT :limit)) p
   ORDER BY id DESC LIMIT :limit`,
).allBy('organizationId', 'beforeId', 'limit')

interface NewUser {
  id: string
  email: string
  passwordHash: string | null
  isOperator: boolean
}

/** Returns whether another user is an operator and can sign in. */
export const hasOtherOperator = async (tx: Tx, id: string) => (await otherOperator.run(tx, { id })) > 0
