import { type Queryable, statement, type Tx } from '../database.ts'

export interface ProjectRow {
  id: string
  organization_id: string
  name: string
  version: string
  created_at: Date
}

const insert = statement<ProjectRow, [string, string, string]>(
  'project_insert',
  'INSERT INTO projects (id, organization_id, name) VALUES ($1, $2, $3) RETURNING *',
)

const insertQuotas = statement<never, [string, string[], number[]]>(
  'project_quotas_insert',
  'INSERT INTO quotas (project_id, name, max) SELECT $1, name, max FROM unnest($2::text[], $3::bigint[]) AS t (name, max)',
)

const countRules = statement<never, [string]>(
  'project_rules_count',
  `UPDATE quotas SET used = (SELECT count(*) FROM firewall_rules WHERE project_id = $1)
   WHERE project_id = $1 AND name = 'firewall_rules'`,
)

const locationNames = statement<{ name: string }>(
  'project_locations',
  'SELECT name FROM locations ORDER BY position, name',
)

const find = statement<ProjectRow, [string]>(
  'project_find',
  'SELECT * FROM projects WHERE id = $1 AND deleted_at IS NULL',
)

const listByIds = statement<ProjectRow, [string[], string[]]>(
  'project_list',
  `SELECT * FROM projects
   WHERE (organization_id = ANY ($1::uuid[]) OR id = ANY ($2::uuid[])) AND deleted_at IS NULL
   ORDER BY id DESC`,
)

const list = statement<ProjectRow & { organization_name: string }, [string | null, number]>(
  'project_list_all',
  `SELECT p.*, o.name AS organization_name FROM projects p JOIN organizations o ON o.id = p.organization_id
   WHERE p.deleted_at IS NULL AND ($1::uuid IS NULL OR p.id < $1) ORDER BY p.id DESC LIMIT $2`,
)

const rename = statement<ProjectRow, [string, string]>(
  'project_rename',
  'UPDATE projects SET name = $2 WHERE id = $1 AND deleted_at IS NULL RETURNING *',
)

// Every creation in a project claims its quota first: taking the rows away waits for those under way and stops later ones.
const deleteQuotas = statement<never, [string]>(
  'project_quotas_delete',
  'DELETE FROM quotas WHERE project_id = $1',
)

// VMs that are hidden because their host is away live on as well.
const countContents = statement<{ vms: number; disks: number; operations: number }, [string]>(
  'project_contents',
  `SELECT (SELECT count(*) FROM vms WHERE project_id = $1) AS vms,
          (SELECT count(*) FROM disks WHERE project_id = $1) AS disks,
          (SELECT count(*) FROM operations WHERE project_id = $1 AND state = 'IN_PROGRESS') AS operations`,
)

const deleteRules = statement<never, [string]>(
  'project_rules_delete',
  'DELETE FROM firewall_rules WHERE project_id = $1',
)
const deleteSubnets = statement<never, [string]>(
  'project_subnets_delete',
  'DELETE FROM subnets WHERE project_id = $1',
)
const deleteNetworks = statement<never, [string]>(
  'project_networks_delete',
  'DELETE FROM networks WHERE project_id = $1',
)
const markDeleted = statement<never, [string]>(
  'project_mark_deleted',
  'UPDATE projects SET deleted_at = slipway_now() WHERE id = $1 AND deleted_at IS NULL',
)

/** Violates `projects_name` when the name is taken in the organization. */
export const insertProject = async (tx: Tx, id: string, organizationId: string, name: string) =>
  (await insert.one(tx, id, organizationId, name))!

export const insertProjectQuotas = (tx: Tx, projectId: string, quotas: Record<string, number>) =>
  insertQuotas.run(tx, projectId, Object.keys(quotas), Object.values(quotas))

/** Default rules count like any other. */
export const countProjectRules = (tx: Tx, projectId: string) => countRules.run(tx, projectId)

/** Where a new project can have VMs, in the operator's order. */
export const listProjectLocations = async (tx: Tx) => (await locationNames.all(tx)).map((row) => row.name)

export const findProject = (db: Queryable, id: string) => find.one(db, id)

/** The projects of some organizations, and some by id. */
export const listProjects = (db: Queryable, organizationIds: string[], ids: string[]) =>
  listByIds.all(db, organizationIds, ids)

/** Those of every organization. */
export const listAllProjects = (db: Queryable, beforeId: string | null, limit: number) =>
  list.all(db, beforeId, limit)

export const renameProject = (tx: Tx, id: string, name: string) => rename.one(tx, id, name)

/** What still lives in a project that is about to go. From here on nothing can be created in it. */
export async function closeProject(tx: Tx, id: string) {
  await deleteQuotas.run(tx, id)
  return (await countContents.one(tx, id))!
}

/** Only for an empty project. False when it is gone already. */
export async function deleteProject(tx: Tx, id: string): Promise<boolean> {
  await deleteRules.run(tx, id)
  await deleteSubnets.run(tx, id)
  await deleteNetworks.run(tx, id)
  return (await markDeleted.run(tx, id)) === 1
}
