import type { SearchableType } from '@slipway/contract'
import { statement } from '../../postgres/statement.ts'
import { failedCreationsOf } from './failed-creations.ts'

export interface FoundRow {
  resource_type: SearchableType
  resource_id: string
  name: string
  state: string
  location: string
  address: string
  project_id: string | null
  project_name: string | null
  organization_id: string | null
  organization_name: string | null
}

const maxResults = 20

/**
 * Ranks how well a text matches the query: it equals the query, begins with it, has a word that begins with
 * it, or contains it. Other texts have no rank. The query is in lower case.
 */
const rankOf = (text: string) =>
  `CASE WHEN ${text} = :q THEN 0 WHEN starts_with(${text}, :q) THEN 1
        WHEN strpos(translate(${text}, '-_.@/', '     '), ' ' || :q) > 0 THEN 2 WHEN strpos(${text}, :q) > 0 THEN 3 END`
/** An id matches by its first 8 or more characters; fewer could match by accident. */
const rankOfId = (id: string) =>
  `CASE WHEN length(:q) >= 8 AND starts_with(${id}::text, :q) THEN CASE WHEN ${id}::text = :q THEN 0 ELSE 1 END END`
const rankOfAddress = (address: string) =>
  `CASE WHEN host(${address}) = :q THEN 0 WHEN length(:q) >= 4 AND starts_with(host(${address}), :q) THEN 1 END`

/** The query for one type of resource. Rows without a rank are not returned. */
const part = (found: { type: SearchableType; columns: string; ranks: string[]; from: string }) =>
  `(SELECT * FROM (SELECT '${found.type}' AS resource_type, ${found.columns}, least(${found.ranks.join(', ')}) AS rank
                   FROM ${found.from}) ranked
    WHERE rank IS NOT NULL ORDER BY rank, length(name), name LIMIT ${maxResults})`

const best = (parts: string[]) =>
  `SELECT * FROM (${parts.join(' UNION ALL ')}) found ORDER BY rank, length(name), name, resource_id LIMIT ${maxResults}`

const projectAnd = (owner: string) => `p.id AS project_id, p.name AS project_name, ${owner}`
const owner = `o.id AS organization_id, o.name AS organization_name`
const resources = (table: string) =>
  `${table} t JOIN projects p ON p.id = t.project_id JOIN organizations o ON o.id = p.organization_id
   WHERE p.organization_id = :organizationId AND p.deleted_at IS NULL`
const columnsOf = (state: string, location: string, address: string) =>
  `t.id AS resource_id, t.name, ${state} AS state, ${location} AS location, ${address} AS address, ${projectAnd(owner)}`
const byNameOrId = [rankOf('lower(t.name)'), rankOfId('t.id')]
const captureColumns = columnsOf('t.state', 't.location', `''`)
const addressColumns = columnsOf(`''`, 't.location', 'host(t.address)')
const vmAddress = `coalesce(host(t.public_address), host(t.private_address))`

/**
 * Finds resources of all projects of an organization, best match first. Reads only rows of this organization.
 */
export const searchOrganization = statement<FoundRow, { organizationId: string; q: string }>(
  'search_organization',
  best([
    part({
      type: 'vm',
      columns: columnsOf('t.state', 't.location', vmAddress),
      ranks: [...byNameOrId, rankOfAddress('t.public_address'), rankOfAddress('t.private_address')],
      from: `${resources('vms')} AND t.deleted_at IS NULL`,
    }),
    part({
      type: 'vm',
      columns: columnsOf(`'FAILED'`, 't.location', `''`),
      ranks: byNameOrId,
      from: resources(
        `(SELECT o.resource_id AS id, o.project_id, o.request ->> 'name' AS name, o.location FROM ${failedCreationsOf('vm')})`,
      ),
    }),
    part({
      type: 'disk',
      columns: columnsOf('t.state', 't.location', `''`),
      ranks: byNameOrId,
      from: resources('disks'),
    }),
    part({
      type: 'snapshot',
      columns: captureColumns,
      ranks: byNameOrId,
      from: `${resources('captures')} AND t.kind = 'snapshot'`,
    }),
    part({
      type: 'custom_image',
      columns: captureColumns,
      ranks: byNameOrId,
      from: `${resources('captures')} AND t.kind = 'image'`,
    }),
    part({
      type: 'instance_group',
      columns: columnsOf('t.state', 't.location', `''`),
      ranks: byNameOrId,
      from: resources('instance_groups'),
    }),
    // A search by name finds only the newest version of a template.
    part({
      type: 'instance_template',
      columns: columnsOf(`''`, `''`, `''`),
      ranks: [`CASE WHEN t.is_newest THEN ${rankOf('lower(t.name)')} END`, rankOfId('t.id')],
      from: resources(
        `(SELECT id, project_id, name, version = max(version) OVER (PARTITION BY project_id, name) AS is_newest
          FROM instance_templates WHERE project_id IN (SELECT id FROM projects WHERE organization_id = :organizationId))`,
      ),
    }),
    part({
      type: 'firewall_rule',
      columns: columnsOf('t.state', `''`, `''`),
      ranks: byNameOrId,
      from: resources('firewall_rules'),
    }),
    part({
      type: 'network',
      columns: columnsOf(`''`, `''`, 't.cidr::text'),
      ranks: [...byNameOrId, rankOf('t.cidr::text')],
      from: resources('networks'),
    }),
    part({
      type: 'subnet',
      columns: columnsOf(`''`, 't.location', 't.cidr::text'),
      ranks: [...byNameOrId, rankOf('t.cidr::text')],
      from: resources('subnets'),
    }),
    part({
      type: 'address',
      columns: addressColumns,
      ranks: [...byNameOrId, rankOfAddress('t.address')],
      from: `${resources('public_addresses')} AND t.name IS NOT NULL`,
    }),
    part({
      type: 'project',
      columns: `t.id AS resource_id, t.name, '' AS state, '' AS location, '' AS address,
                t.id AS project_id, t.name AS project_name, ${owner}`,
      ranks: byNameOrId,
      from: `projects t JOIN organizations o ON o.id = t.organization_id
             WHERE t.organization_id = :organizationId AND t.deleted_at IS NULL`,
    }),
  ]),
).allBy('organizationId', 'q')

const noProject = `NULL::uuid AS project_id, NULL AS project_name`
const noOwner = `NULL::uuid AS organization_id, NULL AS organization_name`
const joinOwner = 'JOIN projects p ON p.id = t.project_id JOIN organizations o ON o.id = p.organization_id'
// There can be many rows, so their names are read from a unique index and only the best matches are looked
// up.
const byName = (table: string, condition: string) => `
  (SELECT project_id, name, rank
   FROM (SELECT project_id, name, ${rankOf('lower(name)')} AS rank FROM ${table} t WHERE ${condition}) named
   WHERE rank IS NOT NULL ORDER BY rank, length(name), name LIMIT ${maxResults}) n
  JOIN ${table} t ON t.project_id = n.project_id AND t.name = n.name AND ${condition} ${joinOwner}`
const exactly = ['0']

/** Finds resources of one type, of all tenants, by name and by full id. */
const ofAllTenants = (found: { type: SearchableType; columns: string; table: string; condition: string }) => [
  part({ ...found, ranks: ['n.rank'], from: byName(found.table, found.condition) }),
  part({
    ...found,
    ranks: exactly,
    from: `${found.table} t ${joinOwner} WHERE ${found.condition} AND t.id = :id::uuid`,
  }),
]
const isNotDeleted = 't.deleted_at IS NULL'
const isReserved = 't.name IS NOT NULL'
const vmColumns = columnsOf('t.state', 't.location', vmAddress)

/**
 * Finds hosts, tenants, users, VMs, copies of disks and reserved addresses, best match first. `id` and
 * `address` are set if `q` is an id or an address.
 */
export const searchEverywhere = statement<FoundRow, { q: string; id: string | null; address: string | null }>(
  'search_everywhere',
  best([
    part({
      type: 'host',
      columns: `t.id AS resource_id, t.name, t.state, t.location, '' AS address, ${noProject}, ${noOwner}`,
      ranks: byNameOrId,
      from: 'hosts t WHERE true',
    }),
    part({
      type: 'organization',
      columns: `t.id AS resource_id, t.name, CASE WHEN t.suspended_at IS NULL THEN '' ELSE 'suspended' END AS state,
                '' AS location, '' AS address, ${noProject}, t.id AS organization_id, t.name AS organization_name`,
      ranks: byNameOrId,
      from: 'organizations t WHERE true',
    }),
    part({
      type: 'project',
      columns: `t.id AS resource_id, t.name, '' AS state, '' AS location, '' AS address,
                t.id AS project_id, t.name AS project_name, ${owner}`,
      ranks: byNameOrId,
      from: 'projects t JOIN organizations o ON o.id = t.organization_id WHERE t.deleted_at IS NULL',
    }),
    part({
      type: 'user',
      columns: `t.id AS resource_id, t.email AS name, CASE WHEN t.suspended_at IS NULL THEN '' ELSE 'suspended' END AS state,
                '' AS location, '' AS address, ${noProject}, ${noOwner}`,
      ranks: [rankOf('t.email'), rankOfId('t.id')],
      from: 'users t WHERE true',
    }),
    ...ofAllTenants({ type: 'vm', columns: vmColumns, table: 'vms', condition: isNotDeleted }),
    part({
      type: 'vm',
      columns: vmColumns,
      ranks: exactly,
      from: `vms t ${joinOwner} WHERE ${isNotDeleted}
               AND t.id = (SELECT vm_id FROM public_addresses WHERE address = :address::inet)`,
    }),
    ...ofAllTenants({
      ...{ type: 'snapshot', columns: captureColumns, table: 'captures', condition: `t.kind = 'snapshot'` },
    }),
    ...ofAllTenants({
      ...{ type: 'custom_image', columns: captureColumns, table: 'captures', condition: `t.kind = 'image'` },
    }),
    ...ofAllTenants({
      ...{ type: 'address', columns: addressColumns, table: 'public_addresses', condition: isReserved },
    }),
    part({
      type: 'address',
      columns: addressColumns,
      ranks: exactly,
      from: `public_addresses t ${joinOwner} WHERE ${isReserved} AND t.address = :address::inet`,
    }),
  ]),
).all
