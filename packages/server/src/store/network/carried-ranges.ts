import type { Queryable, Tx } from '../../postgres/database.ts'
import { gathered } from '../../postgres/gathered.ts'
import { statement } from '../../postgres/statement.ts'

interface CarriedRange {
  subnet_id: string
}

// Holding a range prevents its release. A range that another transaction is releasing is skipped.
const hold = statement<CarriedRange, { subnetIds: string[] }>(
  'carried_range_hold',
  `SELECT subnet_id FROM carried_ranges WHERE subnet_id = ANY (:subnetIds::uuid[]) FOR KEY SHARE SKIP LOCKED`,
)

/** The ranges `r` that overlap with a subnet `s`, including its own. */
const overlaps = 'r.location = s.location AND r.cidr && s.cidr'

// Waits for the transactions that hold these ranges. Only a later statement sees what they have written.
const lockOverlapping = statement<CarriedRange, { subnetId: string }>(
  'carried_range_lock',
  `SELECT r.subnet_id FROM subnets s JOIN carried_ranges r ON ${overlaps}
   WHERE s.id = :subnetId ORDER BY r.subnet_id FOR UPDATE OF r`,
)

const hasVms = 'EXISTS (SELECT FROM vms v WHERE v.subnet_id = r.subnet_id)'

// The transaction has locked these ranges, so that no VM is added in the meantime.
const releaseUnused = statement<never, { subnetId: string }>(
  'carried_range_let_go',
  `DELETE FROM carried_ranges r USING subnets s
   WHERE s.id = :subnetId AND ${overlaps} AND r.subnet_id <> s.id AND NOT ${hasVms}`,
)

// If two transactions take overlapping ranges, the second one waits for the first and then inserts nothing.
const take = statement<never, { subnetId: string }>(
  'carried_range_take',
  `INSERT INTO carried_ranges (subnet_id, location, cidr)
   SELECT id, location, cidr FROM subnets WHERE id = :subnetId ON CONFLICT DO NOTHING`,
)

const taken = statement<{ id: string }, { subnetIds: string[] }>(
  'carried_range_taken',
  `SELECT s.id FROM unnest(:subnetIds::uuid[]) AS w (id) JOIN subnets s ON s.id = w.id
   WHERE EXISTS (SELECT FROM carried_ranges r WHERE ${overlaps} AND r.subnet_id <> s.id AND ${hasVms})`,
)

/**
 * Holds the subnet's range until the transaction ends. Returns false if the location does not carry the range
 * yet.
 */
export const holdCarriedRange = gathered(async (tx: Tx, subnetIds: string[]): Promise<boolean[]> => {
  const held = new Set((await hold.all(tx, { subnetIds })).map(({ subnet_id }) => subnet_id))
  return subnetIds.map((id) => held.has(id))
})

/**
 * Makes the location carry the subnet's range, and holds it until the transaction ends. Returns false if VMs
 * of another network have an overlapping range. It waits for locks, so call it only in a transaction for a
 * single VM.
 */
export async function carryRange(tx: Tx, subnetId: string): Promise<boolean> {
  await lockOverlapping.run(tx, { subnetId })
  await releaseUnused.run(tx, { subnetId })
  await take.run(tx, { subnetId })
  return (await lockOverlapping.all(tx, { subnetId })).some(({ subnet_id }) => subnet_id === subnetId)
}

/** Returns the subnets that overlap a range that VMs of another network use. */
export const listTakenRanges = async (db: Queryable, subnetIds: string[]): Promise<Set<string>> =>
  new Set((await taken.all(db, { subnetIds })).map(({ id }) => id))
