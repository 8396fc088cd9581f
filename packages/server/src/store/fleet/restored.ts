import type { Queryable } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import { firewallDue } from '../network/firewalls.ts'

// The rules in the database are applied again, because the engine may have different ones. Locks VMs in id
// order, like every statement that writes the firewalls of several VMs.
const vmGenerations = statement<
  { id: string },
  { ids: string[]; generations: number[]; firewalls: number[] }
>(
  'vm_take_generations',
  `WITH ahead AS MATERIALIZED (
     SELECT v.id, s.generation, s.firewall
     FROM unnest(:ids::uuid[], :generations::bigint[], :firewalls::bigint[]) AS s (id, generation, firewall)
     JOIN vms v ON v.id = s.id
     WHERE v.generation < s.generation OR v.firewall_wanted < s.firewall
     ORDER BY v.id FOR NO KEY UPDATE OF v)
   UPDATE vms v SET generation = greatest(v.generation, a.generation),
          firewall_applied = greatest(v.firewall_applied, a.firewall),
          firewall_wanted = greatest(v.firewall_wanted, a.firewall) + 1, ${firewallDue}
   FROM ahead a WHERE v.id = a.id
   RETURNING v.id`,
)

const diskGenerations = statement<{ id: string }, { ids: string[]; generations: number[] }>(
  'disk_take_generations',
  `WITH ahead AS MATERIALIZED (
     SELECT d.id, s.generation FROM unnest(:ids::uuid[], :generations::bigint[]) AS s (id, generation)
     JOIN disks d ON d.id = s.id
     WHERE d.generation < s.generation
     ORDER BY d.id FOR NO KEY UPDATE OF d)
   UPDATE disks d SET generation = a.generation FROM ahead a WHERE d.id = a.id
   RETURNING d.id`,
)

const captureGenerations = statement<{ id: string }, { ids: string[]; generations: number[] }>(
  'capture_take_generations',
  `WITH ahead AS MATERIALIZED (
     SELECT c.id, s.generation FROM unnest(:ids::uuid[], :generations::bigint[]) AS s (id, generation)
     JOIN captures c ON c.id = s.id
     WHERE c.generation < s.generation
     ORDER BY c.id FOR NO KEY UPDATE OF c)
   UPDATE captures c SET generation = a.generation FROM ahead a WHERE c.id = a.id
   RETURNING c.id`,
)

interface ReportedGenerations {
  vms: { id: string; generation: number; firewallGeneration: number }[]
  disks: { id: string; generation: number }[]
  captures: { id: string; generation: number }[]
}

/**
 * Adopts generations that engines report and that are newer than those in the database. Returns the ids of
 * the changed resources.
 */
export async function takeGenerations(
  db: Queryable,
  { vms, disks, captures }: ReportedGenerations,
): Promise<string[]> {
  const taken = await vmGenerations.all(db, {
    ids: vms.map(({ id }) => id),
    generations: vms.map(({ generation }) => generation),
    firewalls: vms.map(({ firewallGeneration }) => firewallGeneration),
  })
  const takenDisks = await diskGenerations.all(db, {
    ids: disks.map(({ id }) => id),
    generations: disks.map(({ generation }) => generation),
  })
  const takenCaptures = await captureGenerations.all(db, {
    ids: captures.map(({ id }) => id),
    generations: captures.map(({ generation }) => generation),
  })
  return [...taken, ...takenDisks, ...takenCaptures].map(({ id }) => id)
}
