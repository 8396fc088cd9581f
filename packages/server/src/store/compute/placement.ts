import type { Family } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'

/**
 * The SQL condition for a host `h` that fits a VM. Availability, capacity and placement share it. The
 * arguments are SQL expressions.
 */
export const fits = (location: string, family: string, gpuCount: string) =>
  `h.is_schedulable AND h.state = 'up' AND h.location = ${location} AND h.family = ${family} AND h.free_gpus >= ${gpuCount}`

/** The best fit is the fullest host. */
export const bestFirst = 'ORDER BY h.free_gpus, h.id'

/**
 * The ORDER BY makes the planner use the index. For a plain EXISTS, it would expect to find a host early in a
 * table scan.
 */
export const existsHost = (condition: string) =>
  `coalesce((SELECT true FROM hosts h WHERE ${condition} ${bestFirst} LIMIT 1), false)`

// The transaction fails if a GPU is neither free nor held for this claim. A reserved GPU stays part of its
// reservation.
const claim = statement<never, Columns<{ vmId: string; gpuId: string; heldFor: string | null }>>(
  'gpu_claim',
  `WITH claimed AS (
     UPDATE gpus g SET state = 'claimed', vm_id = c.vm_id, quarantined_at = NULL,
       held_for = CASE g.held_kind WHEN 'reservation' THEN g.held_for END,
       held_kind = CASE g.held_kind WHEN 'reservation' THEN g.held_kind END
     FROM unnest(:vmId::uuid[], :gpuId::uuid[], :heldFor::uuid[]) AS c (vm_id, gpu_id, held_for)
     WHERE g.id = c.gpu_id AND (g.state = 'free' OR g.state = 'held' AND g.held_for = c.held_for
       OR g.state = 'quarantined' AND g.last_vm_id = c.vm_id AND NOT g.is_held_back) RETURNING g.id)
   SELECT assert_or_abort(count(*) = cardinality(:gpuId::uuid[]), 'a GPU is no longer free') FROM claimed`,
)

// The host row is locked before its GPUs, as in every change of a GPU's state.
const quarantine = statement<{ vm_id: string }, { vmIds: string[] }>(
  'gpu_quarantine',
  `WITH host AS MATERIALIZED (
     SELECT id FROM hosts WHERE id = ANY (ARRAY(SELECT host_id FROM gpus WHERE vm_id = ANY (:vmIds::uuid[])))
     ORDER BY id FOR NO KEY UPDATE),
   released AS MATERIALIZED (
     SELECT id, vm_id FROM gpus
     WHERE vm_id = ANY (:vmIds::uuid[]) AND state = 'claimed' AND host_id IN (SELECT id FROM host))
   UPDATE gpus g SET state = 'quarantined', vm_id = NULL, quarantined_at = slipway_now(), last_vm_id = released.vm_id
   FROM released WHERE g.id = released.id AND g.vm_id = released.vm_id RETURNING released.vm_id`,
)

/** Lists the GPUs that wait for a reset, except those that an operator holds back. */
export const listQuarantinedGpus = statement<QuarantinedGpu, { location: string }>(
  'gpu_quarantined',
  `SELECT g.id, g.pci_address, g.host_id, h.name AS host, g.quarantined_at, g.suspect_since IS NOT NULL AS is_suspect
   FROM gpus g JOIN hosts h ON h.id = g.host_id
   WHERE g.state = 'quarantined' AND NOT g.is_held_back AND h.location = :location ORDER BY g.quarantined_at`,
).allBy('location')

// An inspection that began before the quarantine does not show whether the GPU was reset after its last VM. A
// reserved GPU is held for its reservation again.
const freeClean = statement<{ host_id: string }, { gpuIds: string[]; inspectedAt: Date }>(
  'gpu_free_clean',
  `WITH host AS MATERIALIZED (
     SELECT id FROM hosts WHERE id IN (SELECT host_id FROM gpus WHERE id = ANY(:gpuIds::uuid[])) ORDER BY id
     FOR NO KEY UPDATE)
   UPDATE gpus SET state = CASE WHEN held_for IS NULL THEN 'free' ELSE 'held' END, quarantined_at = NULL
   WHERE id = ANY(:gpuIds::uuid[]) AND state = 'quarantined' AND NOT is_held_back AND quarantined_at <= :inspectedAt
     AND host_id IN (SELECT id FROM host) RETURNING host_id`,
)

// Finds the GPUs that the VM had before it stopped, if they are all still in quarantine and have no fault.
// Waits for the lock on their host.
const lockOwn = statement<{ host_id: string; gpu_ids: string[] }, { vmId: string }>(
  'gpu_lock_own',
  `WITH host AS MATERIALIZED (
     SELECT id FROM hosts WHERE is_schedulable AND state = 'up'
       AND id IN (SELECT host_id FROM gpus WHERE last_vm_id = :vmId AND state = 'quarantined')
     ORDER BY id FOR NO KEY UPDATE)
   SELECT g.host_id, array_agg(g.id) AS gpu_ids FROM gpus g
   WHERE g.last_vm_id = :vmId AND g.state = 'quarantined' AND NOT g.is_held_back
     AND num_nonnulls(g.suspect_since, g.lost_at) = 0 AND g.host_id IN (SELECT id FROM host)
   GROUP BY g.host_id`,
)

interface WantedType {
  name: string
  family: Family
  gpuCount: number
}

/** A null location means all locations. */
type TypesAt = Columns<WantedType> & { location: string | null }

const wantedTypes =
  'unnest(:name::text[], :family::text[], :gpuCount::integer[]) WITH ORDINALITY AS t (type, family, gpu_count, ordinal)'
const catalogueOrder = 'ORDER BY l.position, l.name, t.ordinal'

const availability = statement<AvailabilityRow, TypesAt>(
  'availability_list',
  `SELECT t.type, l.name AS location,
          ${existsHost(fits('l.name', 't.family', 't.gpu_count'))} AS available
   FROM locations l CROSS JOIN ${wantedTypes}
   WHERE :location::text IS NULL OR l.name = :location ${catalogueOrder}`,
)

// A host offers every type that it could run if it were empty.
const offering = statement<{ location: string }, { family: string; gpuCount: number }>(
  'location_offering',
  `SELECT l.name AS location FROM locations l
   WHERE ${existsHost(
     `h.is_schedulable AND h.state = 'up' AND h.location = l.name AND h.family = :family
      AND h.usable_gpus >= :gpuCount::integer`,
   )}
   ORDER BY l.position, l.name`,
)

const capacity = statement<CapacityRow, TypesAt>(
  'capacity_list',
  `SELECT t.type, l.name AS location,
          (SELECT coalesce(sum(h.free_gpus / t.gpu_count), 0) FROM hosts h
           WHERE ${fits('l.name', 't.family', 't.gpu_count')}) AS quantity
   FROM locations l CROSS JOIN ${wantedTypes}
   WHERE :location::text IS NULL OR l.name = :location ${catalogueOrder}`,
)

interface GpuClaim {
  vmId: string
  gpuIds: string[]
  /** The request or reservation for which the GPUs are held. */
  heldFor?: string
}

/** Claims GPUs whose hosts the transaction has locked. The transaction is retried if a GPU is no longer free. */
export const claimGpus = (tx: Tx, claim: GpuClaim): Promise<void> => tx.enqueue(writeClaims, claim)

async function writeClaims(tx: Tx, claims: GpuClaim[]): Promise<void> {
  const rows = claims.flatMap(({ vmId, gpuIds, heldFor = null }) =>
    gpuIds.map((gpuId) => ({ vmId, gpuId, heldFor })),
  )
  await claim.run(tx, columns(rows, ['vmId', 'gpuId', 'heldFor']))
}

/**
 * Returns the GPUs that a stopped VM had, while they wait for their reset: the same VM may use them again. The
 * VM was off when they were put into quarantine, so its engine has released them.
 */
export async function findOwnGpus(
  tx: Tx,
  vmId: string,
  gpuCount: number,
): Promise<{ hostId: string; gpuIds: string[] } | undefined> {
  const own = await lockOwn.all(tx, { vmId })
  const whole = own.find(({ gpu_ids }) => gpu_ids.length === gpuCount)
  return whole && { hostId: whole.host_id, gpuIds: whole.gpu_ids }
}

/**
 * Releases the GPUs of VMs. No other VM gets them before the engine has reset them. Returns the number of GPUs
 * of each VM.
 */
export async function quarantineGpus(tx: Tx, vmIds: string[]): Promise<number[]> {
  const released = await quarantine.all(tx, { vmIds })
  return vmIds.map((id) => released.filter(({ vm_id }) => vm_id === id).length)
}

interface QuarantinedGpu {
  id: string
  pci_address: string
  host_id: string
  host: string
  quarantined_at: Date
  /** True if a fault of the GPU is known. */
  is_suspect: boolean
}

/**
 * Frees GPUs that an inspection found to be reset and unused. `inspectedAt` is when the inspection started,
 * by the database's clock. Locks the hosts of these GPUs and returns the hosts of those that were freed.
 */
export async function freeCleanGpus(tx: Tx, gpuIds: string[], inspectedAt: Date): Promise<string[]> {
  if (gpuIds.length === 0) return []
  return [...new Set((await freeClean.all(tx, { gpuIds, inspectedAt })).map(({ host_id }) => host_id))]
}

interface AvailabilityRow {
  type: string
  location: string
  available: boolean
}
interface CapacityRow {
  type: string
  location: string
  quantity: number
}

const typesAt = (types: WantedType[], location: string | null): TypesAt => ({
  ...columns(types, ['name', 'family', 'gpuCount']),
  location,
})

export const listAvailability = (db: Queryable, types: WantedType[], location: string | null) =>
  availability.all(db, typesAt(types, location))

/** Lists the locations that have hosts for the type, whether or not it is available now. */
export const listOffering = async (db: Queryable, { family, gpuCount }: WantedType): Promise<string[]> =>
  (await offering.all(db, { family, gpuCount })).map(({ location }) => location)

export const listCapacity = (db: Queryable, types: WantedType[], location: string | null) =>
  capacity.all(db, typesAt(types, location))
