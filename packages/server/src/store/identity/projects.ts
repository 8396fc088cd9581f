import type { LabelSelector, Labels } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { fitsLabels, type LabelParams, labelParams } from '../../postgres/labels.ts'
import { isBefore, type PageParams, statement } from '../../postgres/statement.ts'

export interface ProjectRow {
  id: string
  organization_id: string
  name: string
  version: string
  labels: Labels
  created_at: Date
}

export interface AdminProjectRow extends ProjectRow {
  organization_name: string
  vms: number
  running_vms: number
  month_to_date_usd: string
}

interface NewProjectRow {
  id: string
  organizationId: string
  name: string
  labels: Labels
}

const insert = statement<ProjectRow, NewProjectRow>(
  'project_insert',
  `INSERT INTO projects (id, organization_id, name, labels) VALUES (:id, :organizationId, :name, :labels)
   RETURNING *`,
)

const locationNames = statement<{ name: string }>(
  'project_locations',
  'SELECT name FROM locations ORDER BY position, name',
)

export const findProject = statement<ProjectRow, { id: string }>(
  'project_find',
  'SELECT * FROM projects WHERE id = :id AND deleted_at IS NULL',
).oneBy('id')

const listByIds = statement<ProjectRow, { organizationIds: string[]; ids: string[] } & LabelParams>(
  'project_list',
  `SELECT * FROM projects
   WHERE (organization_id = ANY (:organizationIds::uuid[]) OR id = ANY (:ids::uuid[])) AND deleted_at IS NULL
     AND ${fitsLabels('labels')}
   ORDER BY id DESC`,
)

/** Lists the projects of every organization. */
export const listAllProjects = statement<AdminProjectRow, PageParams>(
  'project_list_all',
  `SELECT p.*, o.name AS organization_name, v.vms, v.running_vms,
          round(coalesce(spent_by(s, slipway_now()), 0) / 3600000, 6)::text AS month_to_date_usd
   FROM projects p JOIN organizations o ON o.id = p.organization_id LEFT JOIN project_spending s ON s.project_id = p.id
   CROSS JOIN LATERAL (SELECT count(*) AS vms, count(*) FILTER (WHERE state = 'STATE_RUNNING') AS running_vms
                       FROM vms WHERE project_id = p.id AND deleted_at IS NULL) v
   WHERE p.deleted_at IS NULL AND ${isBefore('p.id')} ORDER BY p.id DESC LIMIT :limit`,
).allBy('beforeId', 'limit')

const update = statement<ProjectRow, { id: string; name: string | null; labels: Labels | null }>(
  'project_update',
  `UPDATE projects SET name = coalesce(:name, name), labels = coalesce(:labels, labels)
   WHERE id = :id AND deleted_at IS NULL RETURNING *`,
)

// Also counts VMs that were deleted while their host was down.
const countContents = statement<
  {
    vms: number
    'instance groups': number
    disks: number
    snapshots: number
    'custom images': number
    'reserved addresses': number
    operations: number
    'capacity requests': number
    reservations: number
  },
  { id: string }
>(
  'project_contents',
  `SELECT (SELECT count(*) FROM vms WHERE project_id = :id) AS vms,
          (SELECT count(*) FROM instance_groups WHERE project_id = :id) AS "instance groups",
          (SELECT count(*) FROM disks WHERE project_id = :id) AS disks,
          (SELECT count(*) FROM captures WHERE project_id = :id AND kind = 'snapshot') AS snapshots,
          (SELECT count(*) FROM captures WHERE project_id = :id AND kind = 'image') AS "custom images",
          (SELECT count(*) FROM public_addresses WHERE project_id = :id AND name IS NOT NULL) AS "reserved addresses",
          (SELECT count(*) FROM operation_queue WHERE project_id = :id) AS operations,
          (SELECT count(*) FROM capacity_requests WHERE project_id = :id AND due_at IS NOT NULL) AS "capacity requests",
          (SELECT count(*) FROM reservations WHERE billing_project_id = :id AND ended_at IS NULL) AS reservations`,
)

const deleteRules = statement<never, { id: string }>(
  'project_rules_delete',
  'DELETE FROM firewall_rules WHERE project_id = :id',
)
const deleteSubnets = statement<never, { id: string }>(
  'project_subnets_delete',
  'DELETE FROM subnets WHERE project_id = :id',
)
const deleteNetworks = statement<never, { id: string }>(
  'project_networks_delete',
  'DELETE FROM networks WHERE project_id = :id',
)
const markDeleted = statement<never, { id: string }>(
  'project_mark_deleted',
  'UPDATE projects SET deleted_at = slipway_now() WHERE id = :id AND deleted_at IS NULL',
)

/** Violates `projects_name` if the name is taken in the organization. */
export const insertProject = async (tx: Tx, project: NewProjectRow) => (await insert.one(tx, project))!

/** Lists the names of all locations, in the operator's order. */
export const listLocationNames = async (tx: Tx) => (await locationNames.all(tx)).map((row) => row.name)

/** Lists the projects of these organizations, and those with these ids. */
export const listProjects = (
  db: Queryable,
  organizationIds: string[],
  ids: string[],
  labels: LabelSelector | null,
) => listByIds.all(db, { organizationIds, ids, ...labelParams(labels) })

/**
 * Values that are not given stay unchanged. Violates `projects_name` if the name is taken in the
 * organization.
 */
export const updateProject = (tx: Tx, id: string, change: { name?: string; labels?: Labels }) =>
  update.one(tx, { id, name: change.name ?? null, labels: change.labels ?? null })

export const countProjectContents = async (tx: Tx, id: string) => (await countContents.one(tx, { id }))!

/** The project must be empty. Returns false if it is already deleted. */
export async function deleteProject(tx: Tx, id: string): Promise<boolean> {
  await deleteRules.run(tx, { id })
  await deleteSubnets.run(tx, { id })
  await deleteNetworks.run(tx, { id })
  return (await markDeleted.run(tx, { id })) === 1
}
