import { statement } from '../../postgres/statement.ts'

/**
 * Returns the ids that have no VM, disk, custom image or snapshot, with the newest generation that an
 * operation has for them.
 */
export const findOrphans = statement<{ id: string; newest_generation: number | null }, { ids: string[] }>(
  'orphans',
  `SELECT s.id, (SELECT max(o.generation) FROM operations o WHERE o.resource_id = s.id) AS newest_generation
   FROM unnest(:ids::uuid[]) s (id)
   WHERE NOT EXISTS (SELECT FROM vms v WHERE v.id = s.id) AND NOT EXISTS (SELECT FROM disks d WHERE d.id = s.id)
     AND NOT EXISTS (SELECT FROM captures c WHERE c.id = s.id)`,
).allBy('ids')
