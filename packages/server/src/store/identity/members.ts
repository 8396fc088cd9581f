import type { Role } from '@slipway/contract'
import type { Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'

export interface MemberRow {
  user_id: string
  email: string
  role: Role
  is_invited: boolean
  created_at: Date
}

const columns = `m.user_id, u.email, m.role, u.password_hash IS NULL AS is_invited, m.created_at`

const list = statement<
  MemberRow,
  { organizationId: string; beforeCreatedAt: Date | null; beforeUserId: string | null; limit: number }
>(
  'member_list',
  `SELECT ${columns} FROM memberships m JOIN users u ON u.id = m.user_id
   WHERE m.organization_id = :organizationId
     AND (:beforeCreatedAt::timestamptz IS NULL
          OR (m.created_at, m.user_id) < (:beforeCreatedAt, :beforeUserId::uuid))
   ORDER BY m.created_at DESC, m.user_id DESC LIMIT :limit`,
)

const find = statement<MemberRow, { organizationId: string; userId: string }>(
  'member_find',
  `SELECT ${columns} FROM memberships m JOIN users u ON u.id = m.user_id
   WHERE m.organization_id = :organizationId AND m.user_id = :userId`,
)

const insert = statement<never, { organizationId: string; userId: string; role: Role }>(
  'member_insert',
  `INSERT INTO memberships (organization_id, user_id, role) VALUES (:organizationId, :userId, :role)
   ON CONFLICT (organization_id, user_id) DO NOTHING`,
)

const update = statement<never, { organizationId: string; userId: string; role: Role }>(
  'member_update',
  'UPDATE memberships SET role = :role WHERE organization_id = :organizationId AND user_id = :userId',
)

const remove = statement<never, { organizationId: string; userId: string }>(
  'member_delete',
  'DELETE FROM memberships WHERE organization_id = :organizationId AND user_id = :userId',
)

// One who cannot sign in cannot look after an organization.
const hasOwner = statement<{ has_owner: boolean }, { organizationId: string }>(
  'member_has_owner',
  `SELECT EXISTS (
     SELECT FROM memberships m JOIN users u ON u.id = m.user_id
     WHERE m.organization_id = :organizationId AND m.role = 'owner'
       AND u.password_hash IS NOT NULL AND u.suspended_at IS NULL
   ) AS has_owner`,
)

const organizationsOf = statement<{ organization_id: string }, { userId: string }>(
  'member_organizations_of_user',
  'SELECT organization_id FROM memberships WHERE user_id = :userId',
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

export const findMember = (db: Queryable, organizationId: string, userId: string) =>
  find.one(db, { organizationId, userId })

/** Returns false when the user is a member already. */
export const insertMember = async (tx: Tx, organizationId: string, userId: string, role: Role) =>
  (await insert.run(tx, { organizationId, userId, role })) === 1

export const updateMember = (tx: Tx, organizationId: string, userId: string, role: Role) =>
  update.run(tx, { organizationId, userId, role })

export const deleteMember = (tx: Tx, organizationId: string, userId: string) =>
  remove.run(tx, { organizationId, userId })

/** The caller holds the organization's lock. */
export const hasActiveOwner = async (tx: Tx, organizationId: string) =>
  (await hasOwner.one(tx, { organizationId }))?.has_owner ?? false

export const organizationsOfUser = async (db: Queryable, userId: string) =>
  (await organizationsOf.all(db, { userId })).map((row) => row.organization_id)
