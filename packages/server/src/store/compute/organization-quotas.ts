import type { CountedQuotaName, OrganizationQuotaName } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface OrganizationQuotaRow {
  name: OrganizationQuotaName
  max: number
  used: number
  available: number
}

const inProjects = (table: string) => (organizationId: string) =>
  `SELECT count(*) FROM ${table} t JOIN projects p ON p.id = t.project_id WHERE p.organization_id = ${organizationId}`

const isLiveKey = `t.revoked_at IS NULL AND coalesce(t.expires_at > slipway_now(), true)`

/**
 * How the usage of each quota is counted. The rows are counted each time, so that there is no stored number
 * that could be wrong.
 */
const counts: Record<CountedQuotaName, (organizationId: string) => string> = {
  projects: (id) => `SELECT count(*) FROM projects WHERE organization_id = ${id} AND deleted_at IS NULL`,
  networks: inProjects('networks'),
  subnets: inProjects('subnets'),
  access_keys: (id) =>
    `SELECT (${inProjects('access_keys')(id)} AND ${isLiveKey})
          + (SELECT count(*) FROM access_keys t WHERE t.kind = 'organization' AND t.organization_id = ${id} AND ${isLiveKey})`,
  ssh_keys: inProjects('ssh_keys'),
  // Invited people count as members.
  members: (id) =>
    `SELECT (SELECT count(*) FROM memberships WHERE organization_id = ${id})
          + (SELECT count(*) FROM invitations WHERE organization_id = ${id})`,
  webhooks: inProjects('webhooks'),
  // A request counts until it has ended.
  capacity_requests: (id) =>
    `SELECT count(*) FROM capacity_requests WHERE organization_id = ${id} AND due_at IS NOT NULL`,
  instance_groups: inProjects('instance_groups'),
  instance_templates: inProjects('instance_templates'),
  custom_images: (id) => `${inProjects('captures')(id)} AND t.kind = 'image'`,
  snapshots: (id) => `${inProjects('captures')(id)} AND t.kind = 'snapshot'`,
  // Counts the size of the source until the copy is complete, then the stored size.
  captured_gib: (id) =>
    `SELECT coalesce(sum(coalesce(ceil(t.stored_bytes / 1073741824.0), t.size_gib)), 0)::bigint
     FROM captures t JOIN projects p ON p.id = t.project_id WHERE p.organization_id = ${id}`,
  reserved_addresses: (id) => `${inProjects('public_addresses')(id)} AND t.name IS NOT NULL`,
}
const usedOf = (name: string, organizationId: string, otherwise: string) =>
  `CASE ${name} ${Object.entries(counts)
    .map(([each, count]) => `WHEN '${each}' THEN (${count(organizationId)})`)
    .join(' ')} ELSE ${otherwise} END`
const used = usedOf('q.name', 'q.organization_id', 'q.used')

export const listOrganizationQuotas = statement<OrganizationQuotaRow, { organizationId: string }>(
  'organization_quota_list',
  `SELECT name, max, used, greatest(0, max - used) AS available
   FROM (SELECT q.name, q.max, ${used} AS used FROM organization_quotas q
         WHERE q.organization_id = :organizationId AND q.max IS NOT NULL) counted`,
).allBy('organizationId')

const put = statement<never, { organizationId: string; names: string[]; limits: number[] }>(
  'organization_quota_put',
  `INSERT INTO organization_quotas (organization_id, name, max)
   SELECT :organizationId, w.name, w.max FROM unnest(:names::text[], :limits::bigint[]) AS w (name, max) ORDER BY w.name
   ON CONFLICT (organization_id, name) DO UPDATE SET max = excluded.max`,
)

// Sets a limit only if none was ever set, and never below what is in use.
const fill = statement<never, { organizationId: string | null; names: string[]; limits: number[] }>(
  'organization_quota_fill',
  `INSERT INTO organization_quotas AS q (organization_id, name, max)
   SELECT o.id, w.name, greatest(w.max, ${usedOf('w.name', 'o.id', '0')})
   FROM organizations o CROSS JOIN unnest(:names::text[], :limits::bigint[]) AS w (name, max)
   WHERE (:organizationId::uuid IS NULL OR o.id = :organizationId)
     AND NOT EXISTS (SELECT FROM organization_quotas s
                     WHERE s.organization_id = o.id AND s.name = w.name AND s.max IS NOT NULL)
   ORDER BY o.id, w.name
   ON CONFLICT (organization_id, name) DO UPDATE SET max = greatest(excluded.max, q.used) WHERE q.max IS NULL`,
)

// Serializes transactions that add resources of these quotas.
const lock = statement<never, { organizationId: string; names: string[] }>(
  'organization_quota_lock',
  `SELECT FROM organization_quotas WHERE organization_id = :organizationId AND name = ANY (:names::text[])
   ORDER BY name FOR NO KEY UPDATE`,
)
const listOver = statement<OrganizationQuotaRow, { organizationId: string; names: string[] }>(
  'organization_quota_over',
  `SELECT name, max, used, 0 AS available
   FROM (SELECT q.name, q.max, ${used} AS used FROM organization_quotas q
         WHERE q.organization_id = :organizationId AND q.name = ANY (:names::text[])) counted
   WHERE used > max ORDER BY name`,
)

export const setOrganizationQuotas = (
  tx: Tx,
  organizationId: string,
  limits: Partial<Record<OrganizationQuotaName, number>>,
) => put.run(tx, { organizationId, names: Object.keys(limits), limits: Object.values(limits) })

/**
 * Sets the missing limits of one organization, or of all organizations if no id is given. A limit is the
 * given one, or the current usage if that is higher.
 */
export const fillOrganizationQuotas = (
  tx: Tx,
  limits: Record<OrganizationQuotaName, number>,
  organizationId: string | null = null,
) => fill.run(tx, { organizationId, names: Object.keys(limits), limits: Object.values(limits) })

/** Returns whether the organization may add one more resource of this quota. */
export const hasRoomInQuota = async (
  tx: Tx,
  organizationId: string,
  name: CountedQuotaName,
): Promise<boolean> =>
  (await listOrganizationQuotas(tx, organizationId)).every(
    (quota) => quota.name !== name || quota.available > 0,
  )

/**
 * Returns the first quota that is exceeded after the caller has added to it. Locks the quotas until the
 * transaction ends.
 */
export async function findExceededQuota(
  tx: Tx,
  organizationId: string,
  names: CountedQuotaName[],
): Promise<OrganizationQuotaRow | undefined> {
  await lock.run(tx, { organizationId, names })
  return listOver.one(tx, { organizationId, names })
}
