import type { Queryable } from '../database.ts'
import { statement } from '../statement.ts'

// What has been deleted keeps its name.
const byIds = statement<{ id: string; name: string }, { ids: string[] }>(
  'resource_names',
  `SELECT id, name FROM vms WHERE id = ANY (:ids::uuid[])
   UNION ALL SELECT id, name FROM disks WHERE id = ANY (:ids::uuid[])
   UNION ALL SELECT id, name FROM firewall_rules WHERE id = ANY (:ids::uuid[])`,
)

/** Returns the names of what operations work on: VMs, disks and rules, by id. */
export async function findResourceNames(db: Queryable, ids: string[]): Promise<Map<string, string>> {
  const rows = await byIds.all(db, { ids })
  return new Map(rows.map(({ id, name }) => [id, name]))
}
