import type { Family } from '@slipway/contract'
import type { FreeGpu } from '../../domain/placement.ts'
import { type Queryable, TryAgain, type Tx } from '../database.ts'
import { statement } from '../statement.ts'

/**
 * This is the placement predicate, written once: availability, capacity and placement all ask by it. It speaks of a
 * host `h`, and takes what stands for each value in the statement.
 */
const fits = (location: string, family: string, gpuCount: string) =>
  `h.is_schedulable AND h.state = 'up' AND h.location = ${location} AND h.family = ${family} AND h.free_gpus >= ${gpuCount}`

const anywhere = fits(':location', ':family', ':gpuCount')
const amongAllowed = `h.id = ANY(:allowedHosts::uuid[]) AND ${anywhere}`
/** The best fit is the fullest host. */
const bestFirst = 'ORDER BY h.free_gpus, h.id LIMIT 1'

/** The order has the planner use the index: a plain EXISTS bets on meeting one early in the table, and loses. */
const isThereOne = (condition: string) =>
  `coalesce((SELECT true FROM hosts h WHERE ${condition} ${bestFirst}), false)`

interface LockedHost {
  id: string
  name: string
}

const lockHost = (name: string, condition: string, isWaiting = false) =>
  statement<LockedHost, PlacementRequest>(
    `host_lock_${name}`,
    `SELECT h.id, h.name FROM hosts h WHERE ${condition} ${bestFirst} FOR NO KEY UPDATE${isWaiting ? '' : ' SKIP LOCKED'}`,
  )

const fitsNow = (name: string, condition: string) =>
  statement<{ fits: boolean }, PlacementRequest>(
    `host_fits_${name}`,
    `SELECT ${isThereOne(condition)} AS fits`,
  )

/**
 * Hosts that can keep the VM inside one NUMA node come first. The number is part of the statement, so that a partial
 * index finds them; a single GPU is always inside one node, and whole-host types never are.
 */
const anyHost = {
  inOneNode: {
    2: lockHost('node_2', `${anywhere} AND h.max_node_free >= 2`),
    4: lockHost('node_4', `${anywhere} AND h.max_node_free >= 4`),
  } as Record<number, ReturnType<typeof lockHost>>,
  free: lockHost('free', anywhere),
  waiting: lockHost('waiting', anywhere, true),
  fitsNow: fitsNow('anywhere', anywhere),
}

const inOneNodeAllowed = lockHost('allowed_node', `${amongAllowed} AND h.max_node_free >= :gpuCount`)
const allowedHost = {
  inOneNode: { 2: inOneNodeAllowed, 4: inOneNodeAllowed } as Record<number, ReturnType<typeof lockHost>>,
  free: lockHost('allowed_free', amongAllowed),
  waiting: lockHost('allowed_waiting', amongAllowed, true),
  fitsNow: fitsNow('allowed', amongAllowed),
}

const freeGpus = statement<FreeGpu, { hostId: string }>(
  'gpu_free_of_host',
  `SELECT id, pci_address AS "pciAddress", numa_node AS "numaNode", iommu_group AS "iommuGroup"
   FROM gpus WHERE host_id = :hostId AND state = 'free' ORDER BY pci_address`,
)

const claim = statement<never, { vmId: string; gpuIds: string[] }>(
  'gpu_claim',
  `UPDATE gpus SET state = 'claimed', vm_id = :vmId WHERE id = ANY(:gpuIds::uuid[]) AND state = 'free'`,
)

// The host row is locked before its GPUs, here as in every change of a GPU's state.
const quarantine = statement<never, { vmId: string }>(
  'gpu_quarantine',
  `WITH host AS MATERIALIZED (
     SELECT id FROM hosts WHERE id IN (SELECT host_id FROM gpus WHERE vm_id = :vmId) ORDER BY id FOR NO KEY UPDATE)
   UPDATE gpus SET state = 'quarantined', vm_id = NULL, quarantined_at = slipway_now()
   WHERE vm_id = :vmId AND state = 'claimed' AND host_id IN (SELECT id FROM host)`,
)

const quarantined = statement<QuarantinedGpu, { location: string }>(
  'gpu_quarantined',
  `SELECT g.id, g.pci_address, g.host_id, h.name AS host, g.quarantined_at
   FROM gpus g JOIN hosts h ON h.id = g.host_id
   WHERE g.state = 'quarantined' AND NOT g.is_held_back AND h.location = :location ORDER BY g.quarantined_at`,
)

// Who inspected before the GPU was quarantined has seen the time before its last VM, and proves nothing.
const freeClean = statement<never, { gpuIds: string[]; inspectedAt: Date }>(
  'gpu_free_clean',
  `WITH host AS MATERIALIZED (
     SELECT id FROM hosts WHERE id IN (SELECT host_id FROM gpus WHERE id = ANY(:gpuIds::uuid[])) ORDER BY id
     FOR NO KEY UPDATE)
   UPDATE gpus SET state = 'free', quarantined_at = NULL
   WHERE id = ANY(:gpuIds::uuid[]) AND state = 'quarantined' AND NOT is_held_back AND quarantined_at <= :inspectedAt
     AND host_id IN (SELECT id FROM host)`,
)

interface TypesAt {
  names: string[]
  families: string[]
  gpuCounts: number[]
  /** Null means all locations. */
  location: string | null
}

const wantedTypes =
  'unnest(:names::text[], :families::text[], :gpuCounts::integer[]) WITH ORDINALITY AS t (type, family, gpu_count, place)'
/** Types and locations stand in the order of the catalogue. */
const catalogueOrder = 'ORDER BY l.position, l.name, t.place'

const availability = statement<AvailabilityRow, TypesAt>(
  'availability_list',
  `SELECT t.type, l.name AS location,
          ${isThereOne(fits('l.name', 't.family', 't.gpu_count'))} AS available
   FROM locations l CROSS JOIN ${wantedTypes}
   WHERE :location::text IS NULL OR l.name = :location ${catalogueOrder}`,
)

const capacity = statement<CapacityRow, TypesAt>(
  'capacity_list',
  `SELECT t.type, l.name AS location,
          (SELECT coalesce(sum(h.free_gpus / t.gpu_count), 0) FROM hosts h
           WHERE ${fits('l.name', 't.family', 't.gpu_count')}) AS quantity
   FROM locations l CROSS JOIN ${wantedTypes}
   WHERE :location::text IS NULL OR l.name = :location ${catalogueOrder}`,
)

export interface PlacementRequest {
  location: string
  family: Family
  gpuCount: number
  /** Where its disks are, if they are local; null when any host will do. */
  allowedHosts: string[] | null
}

export interface PlacedHost extends LockedHost {
  freeGpus: FreeGpu[]
}

/**
 * Locks the best host for a VM and returns it with its free GPUs, at least as many as wanted; null when nothing fits.
 * Hosts that others hold are passed over. If only such hosts are left, it waits for one, and looks again until a fresh
 * snapshot shows no fit: so the last GPU goes to exactly one of two requests, and the other learns it by looking.
 */
export async function lockHostFor(tx: Tx, request: PlacementRequest): Promise<PlacedHost | null> {
  const ways = request.allowedHosts ? allowedHost : anyHost
  for (;;) {
    const inOneNode = await ways.inOneNode[request.gpuCount]?.one(tx, request)
    const host = inOneNode ?? (await ways.free.one(tx, request))
    if (host) return withFreeGpus(tx, host)
    if (!(await ways.fitsNow.one(tx, request))!.fits) return null
    const awaited = await ways.waiting.one(tx, request)
    if (awaited) return withFreeGpus(tx, awaited)
  }
}

/** This is a statement of its own: begun after the lock, it sees what the holder before us left. */
async function withFreeGpus(tx: Tx, host: LockedHost): Promise<PlacedHost> {
  return { ...host, freeGpus: await freeGpus.all(tx, { hostId: host.id }) }
}

/** The transaction has locked the host of the GPUs. */
export async function claimGpus(tx: Tx, vmId: string, gpuIds: string[]): Promise<void> {
  const claimed = await claim.run(tx, { vmId, gpuIds })
  if (claimed !== gpuIds.length) throw new TryAgain(`${gpuIds.length - claimed} GPUs were not free any more`)
}

/** The VM has left the GPUs: nobody gets them before the engine has reset them. */
export const quarantineGpus = (tx: Tx, vmId: string): Promise<number> => quarantine.run(tx, { vmId })

export interface QuarantinedGpu {
  id: string
  pci_address: string
  host_id: string
  host: string
  quarantined_at: Date
}

/** Lists those that wait for a reset; what an operator holds back is not among them. */
export const listQuarantinedGpus = (db: Queryable, location: string): Promise<QuarantinedGpu[]> =>
  quarantined.all(db, { location })

/**
 * Frees GPUs that an inspection found reset and without a holder. `inspectedAt` is when the inspection began, by the
 * database's clock. Returns how many it freed.
 */
export async function freeCleanGpus(db: Queryable, gpuIds: string[], inspectedAt: Date): Promise<number> {
  return gpuIds.length === 0 ? 0 : freeClean.run(db, { gpuIds, inspectedAt })
}

export interface WantedType {
  name: string
  family: Family
  gpuCount: number
}
export interface AvailabilityRow {
  type: string
  location: string
  available: boolean
}
export interface CapacityRow {
  type: string
  location: string
  quantity: number
}

const typesAt = (types: WantedType[], location: string | null): TypesAt => ({
  names: types.map((type) => type.name),
  families: types.map((type) => type.family),
  gpuCounts: types.map((type) => type.gpuCount),
  location,
})

/** A null location means all of them. */
export const listAvailability = (db: Queryable, types: WantedType[], location: string | null) =>
  availability.all(db, typesAt(types, location))

export const listCapacity = (db: Queryable, types: WantedType[], location: string | null) =>
  capacity.all(db, typesAt(types, location))
