import { isUuid } from '../../domain/ids.ts'
import type { Queryable } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

// A deleted resource has no row; its first operation, which created it, still has the name.
const byIds = statement<{ id: string; name: string }, { ids: string[] }>(
  'resource_names',
  `SELECT w.id, coalesce(v.name, d.name, r.name, c.name, o.request ->> 'name', '') AS name FROM unnest(:ids::uuid[]) AS w (id)
   LEFT JOIN vms v ON v.id = w.id
   LEFT JOIN disks d ON d.id = w.id
   LEFT JOIN firewall_rules r ON r.id = w.id
   LEFT JOIN captures c ON c.id = w.id
   LEFT JOIN LATERAL (SELECT request FROM operations WHERE resource_id = w.id ORDER BY id LIMIT 1) o ON true`,
)

/** Returns the rows with the names of their resources: VMs, disks, firewall rules, custom images and snapshots. */
export async function withResourceNames<Row extends { resource_id: string; resource_name?: string }>(
  db: Queryable,
  rows: Row[],
): Promise<(Row & { resource_name: string })[]> {
  const ids = rows.flatMap(({ resource_id, resource_name }) =>
    !resource_name && isUuid(resource_id) ? [resource_id] : [],
  )
  const found = ids.length === 0 ? [] : await byIds.all(db, { ids })
  const names = new Map(found.map(({ id, name }) => [id, name]))
  return rows.map((row) => ({
    ...row,
    resource_name: row.resource_name || (names.get(row.resource_id) ?? ''),
  }))
}
