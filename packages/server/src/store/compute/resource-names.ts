import type { Queryable } from '../database.ts'
import { statement } from '../statement.ts'

// What has been deleted has no row any more: its first operation, which created it, still knows the name.
const byIds = statement<{ id: string; name: string }, { ids: string[] }>(
  'resource_names',
  `SELECT w.id, coalesce(v.name, d.name, r.name, o.request ->> 'name', '') AS name FROM unnest(:ids::uuid[]) AS w (id)
   LEFT JOIN vms v ON v.id = w.id
   LEFT JOIN disks d ON d.id = w.id
   LEFT JOIN firewall_rules r ON r.id = w.id
   LEFT JOIN LATERAL (SELECT request FROM operations WHERE resource_id = w.id ORDER BY id LIMIT 1) o ON true`,
)

/** Returns the names of what operations work on: VMs, disks and rules, by id. */
export async function findResourceNames(db: Queryable, ids: string[]): Promise<Map<string, string>> {
  const rows = await byIds.all(db, { ids })
  return new Map(rows.map(({ id, name }) => [id, name]))
}
