import type { Role } from '@slipway/contract'
import { isUuid } from '../../domain/ids.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import { findOrganization } from './organizations.ts'

export interface IdentityRow {
  issuer: string
  subject: string
  created_at: Date
}

export const findIdentity = statement<{ user_id: string }, { issuer: string; subject: string }>(
  'identity_find',
  'SELECT user_id FROM user_identities WHERE issuer = :issuer AND subject = :subject',
).oneBy('issuer', 'subject')

// If two requests bind the same subject at the same time, the second one inserts nothing.
const insert = statement<never, { issuer: string; subject: string; userId: string }>(
  'identity_insert',
  `INSERT INTO user_identities (issuer, subject, user_id) VALUES (:issuer, :subject, :userId)
   ON CONFLICT DO NOTHING`,
)

export const listIdentities = statement<IdentityRow, { userId: string }>(
  'identity_list',
  'SELECT issuer, subject, created_at FROM user_identities WHERE user_id = :userId ORDER BY created_at, issuer, subject',
).allBy('userId')

/** Deletes all identities of the user at the issuer. */
export const deleteIdentities = statement<never, { issuer: string; userId: string }, Tx>(
  'identity_delete',
  'DELETE FROM user_identities WHERE issuer = :issuer AND user_id = :userId',
).runBy('issuer', 'userId')

/** Changes the e-mail address of an account without a password to the address that its provider reports. */
export const setEmailFromProvider = statement<never, { userId: string; email: string }, Tx>(
  'identity_set_email',
  'UPDATE users SET email = :email WHERE id = :userId AND password_hash IS NULL',
).runBy('userId', 'email')

const organizationByName = statement<{ id: string }, { name: string }>(
  'identity_organization',
  'SELECT id FROM organizations WHERE name = :name LIMIT 2',
)

export const listMembershipsOf = statement<
  { organization_id: string; role: Role; oidc_issuer: string | null },
  { userId: string },
  Tx
>(
  'identity_memberships',
  'SELECT organization_id, role, oidc_issuer FROM memberships WHERE user_id = :userId',
).allBy('userId')

interface NewMembership {
  organizationId: string
  userId: string
  role: Role
  issuer: string
  /** How long the role is valid if the claims are not read again. */
  seconds: number
}

/** Does not change a membership that comes from an invitation. */
export const putClaimedMembership = statement<never, NewMembership, Tx>(
  'identity_membership_put',
  `INSERT INTO memberships (organization_id, user_id, role, oidc_issuer, claimed_until)
   VALUES (:organizationId, :userId, :role, :issuer, sign_in_now() + make_interval(secs => :seconds))
   ON CONFLICT (organization_id, user_id) DO UPDATE
   SET role = excluded.role, claimed_until = excluded.claimed_until
   WHERE memberships.oidc_issuer = excluded.oidc_issuer`,
).run

/** Returns false if the subject is already bound. */
export const insertIdentity = async (tx: Tx, issuer: string, subject: string, userId: string) =>
  (await insert.run(tx, { issuer, subject, userId })) === 1

/** Returns undefined if no organization or more than one has the name. */
export async function findOrganizationNamed(db: Queryable, nameOrId: string): Promise<string | undefined> {
  if (isUuid(nameOrId)) return (await findOrganization(db, nameOrId))?.id
  const found = await organizationByName.all(db, { name: nameOrId })
  return found.length === 1 ? found[0]!.id : undefined
}
