import type { PaymentState } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { isBefore, type PageParams, statement } from '../../postgres/statement.ts'

export interface OrganizationRow {
  id: string
  name: string
  payment_customer_id: string
  payment_state: PaymentState
  suspended_at: Date | null
  require_totp: boolean
  alert_emails: string[]
  created_at: Date
}

/** An organization as operators see it. */
export interface AccountRow extends OrganizationRow {
  projects: number
  vms: number
  /** The exact cost of this month so far, in USD per hour times milliseconds (`usdOfMs` converts it). */
  spent_usd_ms: string
}

const insert = statement<OrganizationRow, { id: string; name: string }>(
  'organization_insert',
  'INSERT INTO organizations (id, name) VALUES (:id, :name) RETURNING *',
)

export const findOrganization = statement<OrganizationRow, { id: string }>(
  'organization_find',
  'SELECT * FROM organizations WHERE id = :id',
).oneBy('id')

/** Serializes changes of an organization's owners. */
export const lockOrganization = statement<OrganizationRow, { id: string }, Tx>(
  'organization_lock',
  'SELECT * FROM organizations WHERE id = :id FOR NO KEY UPDATE',
).oneBy('id')

export const listOrganizationsByIds = statement<OrganizationRow, { ids: string[] }>(
  'organization_list_by_ids',
  'SELECT * FROM organizations WHERE id = ANY (:ids::uuid[]) ORDER BY id DESC',
).allBy('ids')

/** Lists the organizations among these ids, and the organizations of the projects among them. */
export const listOwners = statement<{ id: string }, { ids: string[] }>(
  'organization_list_owners',
  `SELECT id FROM organizations WHERE id = ANY (:ids::uuid[])
   UNION SELECT organization_id FROM projects WHERE id = ANY (:ids::uuid[])`,
).allBy('ids')

// The spending includes deleted projects, because their cost of this month is still owed.
const selectAccount = `
  SELECT o.*, (SELECT count(*) FROM projects p WHERE p.organization_id = o.id AND p.deleted_at IS NULL) AS projects,
         coalesce((SELECT q.used FROM organization_quotas q WHERE q.organization_id = o.id AND q.name = 'vms'), 0) AS vms,
         (SELECT coalesce(sum(spent_by(s, slipway_now())), 0)::text
          FROM projects p JOIN project_spending s ON s.project_id = p.id WHERE p.organization_id = o.id) AS spent_usd_ms
  FROM organizations o`

export const listOrganizations = statement<AccountRow, PageParams>(
  'organization_list',
  `${selectAccount} WHERE ${isBefore('o.id')} ORDER BY o.id DESC LIMIT :limit`,
).allBy('beforeId', 'limit')

export const findOrganizationAccount = statement<AccountRow, { id: string }>(
  'organization_account',
  `${selectAccount} WHERE o.id = :id`,
).oneBy('id')

interface OrganizationChange {
  name: string | null
  requiresTotp: boolean | null
}

const change = statement<OrganizationRow, { id: string } & OrganizationChange>(
  'organization_change',
  `UPDATE organizations SET name = coalesce(:name, name), require_totp = coalesce(:requiresTotp, require_totp)
   WHERE id = :id RETURNING *`,
)

export const setAlertEmails = statement<never, { id: string; emails: string[] }, Tx>(
  'organization_set_alert_emails',
  'UPDATE organizations SET alert_emails = :emails WHERE id = :id',
).runBy('id', 'emails')

/** Suspending again keeps the time of the first suspension. */
export const suspendOrganization = statement<
  OrganizationRow,
  { id: string; isSuspended: boolean; stopsVms: boolean },
  Tx
>(
  'organization_suspend',
  `UPDATE organizations SET suspended_at = CASE WHEN :isSuspended THEN coalesce(suspended_at, slipway_now()) END,
          stops_vms = :stopsVms
   WHERE id = :id RETURNING *`,
).oneBy('id', 'isSuspended', 'stopsVms')

export const insertOrganization = async (tx: Tx, id: string, name: string): Promise<OrganizationRow> =>
  (await insert.one(tx, { id, name }))!

/** Null leaves a column unchanged. */
export const changeOrganization = (tx: Tx, id: string, changes: OrganizationChange) =>
  change.one(tx, { id, ...changes })
