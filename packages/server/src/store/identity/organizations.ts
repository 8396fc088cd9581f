import { type Queryable, statement, type Tx } from '../database.ts'

export interface OrganizationRow {
  id: string
  name: string
  payment_customer_id: string
  payment_state: 'never' | 'active' | 'declined' | 'removed'
  suspended_at: Date | null
  created_at: Date
}

const insert = statement<OrganizationRow, [string, string]>(
  'organization_insert',
  'INSERT INTO organizations (id, name) VALUES ($1, $2) RETURNING *',
)

const find = statement<OrganizationRow, [string]>(
  'organization_find',
  'SELECT * FROM organizations WHERE id = $1',
)

// Whoever changes who owns an organization waits here for the other.
const lock = statement<OrganizationRow, [string]>(
  'organization_lock',
  'SELECT * FROM organizations WHERE id = $1 FOR NO KEY UPDATE',
)

const listByIds = statement<OrganizationRow, [string[]]>(
  'organization_list_by_ids',
  'SELECT * FROM organizations WHERE id = ANY ($1::uuid[]) AND suspended_at IS NULL ORDER BY id DESC',
)

const list = statement<OrganizationRow, [string | null, number]>(
  'organization_list',
  'SELECT * FROM organizations WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2',
)

const suspend = statement<OrganizationRow, [string, boolean]>(
  'organization_suspend',
  `UPDATE organizations SET suspended_at = CASE WHEN $2 THEN coalesce(suspended_at, slipway_now()) END
   WHERE id = $1 RETURNING *`,
)

export const insertOrganization = async (tx: Tx, id: string, name: string): Promise<OrganizationRow> =>
  (await insert.one(tx, id, name))!

export const findOrganization = (db: Queryable, id: string) => find.one(db, id)

export const lockOrganization = (tx: Tx, id: string) => lock.one(tx, id)

export const listOrganizationsByIds = (db: Queryable, ids: string[]) => listByIds.all(db, ids)

export const listOrganizations = (db: Queryable, beforeId: string | null, limit: number) =>
  list.all(db, beforeId, limit)

export const suspendOrganization = (tx: Tx, id: string, isSuspended: boolean) =>
  suspend.one(tx, id, isSuspended)
