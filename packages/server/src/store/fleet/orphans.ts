import { statement } from '../../postgres/statement.ts'

/** It finds which of these ids no row knows, and what is known of those that once were ours. */
export const findOrphans = statement<{ id: string; newest_generation: number | null }, { ids: string[] }>(
  'orphans',
  `SELECT s.id, (SELECT max(o.generation) FROM operations o WHERE o.resource_id = s.id) AS newest_generation
   FROM unnest(:ids::uuid[]) s (id)
   WHERE NOT EXISTS (SELECT FROM vms v WHERE v.id = s.id) AND NOT EXISTS (SELECT FROM disks d WHERE d.id = s.id)`,
).allBy('ids')
