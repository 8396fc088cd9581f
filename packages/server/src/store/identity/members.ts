import type { Role } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

/** A member, or an invitation to become one; `user_id` is then the invitation's id. */
export interface MemberRow {
  user_id: string
  email: string
  role: Role
  is_invited: boolean
  created_at: Date
}

/**
 * An SQL condition on a row `m` of memberships. A role from single sign-on ends unless its claims are read
 * again in time.
 */
export const isInEffect = '(m.claimed_until IS NULL OR m.claimed_until > sign_in_now())'

const membersAndInvited = `
  (SELECT m.user_id, u.email, m.role, false AS is_invited, m.created_at
   FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.organization_id = :organizationId
   UNION ALL
   SELECT i.id, i.email, i.role, true, i.created_at FROM invitations i WHERE i.organization_id = :organizationId) m`

const list = statement<
  MemberRow,
  { organizationId: string; beforeCreatedAt: Date | null; beforeUserId: string | null; limit: number }
>(
  'member_list',
  `SELECT * FROM ${membersAndInvited}
   WHERE :beforeCreatedAt::timestamptz IS NULL
      OR (m.created_at, m.user_id) < (:beforeCreatedAt, :beforeUserId::uuid)
   ORDER BY m.created_at DESC, m.user_id DESC LIMIT :limit`,
)

export const findMember = statement<MemberRow, { organizationId: string; userId: string }>(
  'member_find',
  `SELECT * FROM ${membersAndInvited} WHERE m.user_id = :userId`,
).oneBy('organizationId', 'userId')

const isMember = statement<{ is_member: boolean }, { organizationId: string; email: string }>(
  'member_has_email',
  `SELECT EXISTS (SELECT FROM memberships m JOIN users u ON u.id = m.user_id
                  WHERE m.organization_id = :organizationId AND u.email = :email) AS is_member`,
)

const insert = statement<never, { organizationId: string; userId: string; role: Role }>(
  'member_insert',
  `INSERT INTO memberships (organization_id, user_id, role) VALUES (:organizationId, :userId, :role)
   ON CONFLICT (organization_id, user_id) DO NOTHING`,
)

export const updateMember = statement<never, { organizationId: string; userId: string; role: Role }, Tx>(
  'member_update',
  'UPDATE memberships SET role = :role WHERE organization_id = :organizationId AND user_id = :userId',
).runBy('organizationId', 'userId', 'role')

export const deleteMember = statement<never, { organizationId: string; userId: string }, Tx>(
  'member_delete',
  'DELETE FROM memberships WHERE organization_id = :organizationId AND user_id = :userId',
).runBy('organizationId', 'userId')

// A suspended owner cannot sign in and does not count.
const hasOwner = statement<{ has_owner: boolean }, { organizationId: string }>(
  'member_has_owner',
  `SELECT EXISTS (
     SELECT FROM memberships m JOIN users u ON u.id = m.user_id
     WHERE m.organization_id = :organizationId AND m.role = 'owner' AND u.suspended_at IS NULL
   ) AS has_owner`,
)

export const listMembers = (
  db: Queryable,
  organizationId: string,
  before: { createdAt: Date; userId: string } | null,
  limit: number,
) =>
  list.all(db, {
    organizationId,
    beforeCreatedAt: before?.createdAt ?? null,
    beforeUserId: before?.userId ?? null,
    limit,
  })

/** Returns whether an account with this e-mail address is a member. */
export const isMemberEmail = async (db: Queryable, organizationId: string, email: string) =>
  (await isMember.one(db, { organizationId, email }))!.is_member

/** Returns false if the user is already a member. */
export const insertMember = async (tx: Tx, organizationId: string, userId: string, role: Role) =>
  (await insert.run(tx, { organizationId, userId, role })) === 1

/** The caller holds the organization's lock. */
export const hasActiveOwner = async (tx: Tx, organizationId: string) =>
  (await hasOwner.one(tx, { organizationId }))?.has_owner ?? false
