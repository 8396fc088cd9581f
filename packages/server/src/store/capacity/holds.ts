import type { OpenHost } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'
import { bestFirst, fits } from '../compute/placement.ts'

// The transaction has locked the hosts. Returns only those that accept VMs and have free GPUs.
export const listOpenHosts = statement<OpenHost, { hostIds: string[] }, Tx>(
  'hold_open_hosts',
  `SELECT h.id, h.name, h.location, h.family, h.free_gpus AS "freeGpus",
          coalesce((SELECT json_agg(json_build_object('id', g.id, 'pciAddress', g.pci_address,
                      'numaNode', g.numa_node, 'iommuGroup', g.iommu_group) ORDER BY g.pci_address)
                    FROM gpus g WHERE g.host_id = h.id AND g.state = 'free'), '[]') AS gpus
   FROM hosts h
   WHERE h.id = ANY (:hostIds::uuid[]) AND h.is_schedulable AND h.state = 'up' AND h.free_gpus > 0 ORDER BY h.id`,
).allBy('hostIds')

const openHost = statement<{ id: string }, { hostId: string }>(
  'hold_open_host',
  `SELECT id FROM hosts WHERE id = :hostId AND is_schedulable AND state = 'up'`,
)
/** Returns whether a host accepts VMs. */
export const isHostOpen = async (tx: Tx, hostId: string): Promise<boolean> =>
  (await openHost.one(tx, { hostId })) !== undefined

/** Locks hosts in id order, like every statement that locks several hosts. */
export const lockHosts = statement<{ id: string }, { hostIds: string[] }, Tx>(
  'hold_lock_hosts',
  'SELECT id FROM hosts WHERE id = ANY (:hostIds::uuid[]) ORDER BY id FOR NO KEY UPDATE',
).allBy('hostIds')

/** Lists the best hosts for a request in each of its queues, at most one for each of its VMs. */
export const listFittingHosts = statement<{ id: string }, { requestId: string }>(
  'hold_fitting_hosts',
  `SELECT h.id FROM capacity_places p CROSS JOIN LATERAL (
     SELECT h.id FROM hosts h
     WHERE ${fits('p.location', 'p.family', 'p.gpus')} AND coalesce(p.host_id = h.id, true)
     ${bestFirst} LIMIT p.vms) h
   WHERE p.request_id = :requestId AND p.is_open`,
).allBy('requestId')

/** Lists requests that have lost held GPUs, because their host is closed or no longer reports them. */
export const listBrokenHolds = statement<{ id: string }, { hostIds: string[] }, Tx>(
  'hold_broken',
  `SELECT r.id FROM capacity_requests r
   WHERE r.state = 'held' AND r.held_hosts && :hostIds::uuid[]
     AND r.gpus > (SELECT count(*) FROM gpus g
                   WHERE g.held_for = r.id AND g.state = 'held' AND g.host_id = ANY (r.held_hosts))`,
).allBy('hostIds')

// The transaction fails if a GPU is no longer free.
const hold = statement<never, { gpuIds: string[]; heldFor: string; heldKind: HoldKind }>(
  'hold_gpus',
  `WITH held AS (
     UPDATE gpus SET state = 'held', held_for = :heldFor, held_kind = :heldKind
     WHERE id = ANY (:gpuIds::uuid[]) AND state = 'free' RETURNING id)
   SELECT assert_or_abort(count(*) = cardinality(:gpuIds::uuid[]), 'a GPU is no longer free') FROM held`,
)

/** Lists the GPUs that are held for a request or reservation, without those that its VMs use. */
export const listHeldGpus = statement<{ id: string; host_id: string }, { heldFor: string }, Tx>(
  'hold_list',
  `SELECT id, host_id FROM gpus WHERE held_for = :heldFor AND state = 'held' ORDER BY host_id, pci_address`,
).allBy('heldFor')

/**
 * Ends holds of a reservation, starting with the hosts on which it holds the fewest GPUs. The transaction has locked
 * the hosts.
 */
export const freeSomeHeld = statement<{ host_id: string }, { heldFor: string; count: number }, Tx>(
  'hold_free_some',
  `UPDATE gpus SET state = 'free', held_for = NULL, held_kind = NULL
   WHERE id = ANY (ARRAY(
     SELECT id FROM (SELECT id, count(*) OVER (PARTITION BY host_id) AS on_host FROM gpus
                     WHERE held_for = :heldFor AND state = 'held') held
     ORDER BY on_host, id LIMIT :count)) RETURNING host_id`,
).all

/** Ends holds; the transaction has locked the hosts. */
export const endHolds = statement<never, { heldFor: string; hostIds: string[] }, Tx>(
  'hold_end',
  `UPDATE gpus SET state = 'free', held_for = NULL, held_kind = NULL
   WHERE held_for = :heldFor AND host_id = ANY (:hostIds::uuid[]) AND state = 'held'`,
).runBy('heldFor', 'hostIds')

/**
 * Ends the holds on hosts that no longer accept VMs. Returns what the GPUs were held for. The transaction has locked
 * the hosts by changing their state.
 */
export const dropHoldsOfClosedHosts = statement<
  { held_for: string; held_kind: HoldKind },
  { hostIds: string[] },
  Tx
>(
  'hold_drop',
  `WITH dropped AS (
     UPDATE gpus g SET state = CASE g.state WHEN 'held' THEN 'free' ELSE g.state END, held_for = NULL, held_kind = NULL
     FROM gpus old JOIN hosts h ON h.id = old.host_id
     WHERE old.id = g.id AND g.host_id = ANY (:hostIds::uuid[]) AND g.held_for IS NOT NULL AND g.state = 'held'
       AND NOT (h.is_schedulable AND h.state = 'up')
     RETURNING old.held_for, old.held_kind)
   SELECT DISTINCT held_for, held_kind FROM dropped`,
).allBy('hostIds')

/** The GPUs on these hosts that are held for one request, reservation or operation. */
export interface Hold {
  heldFor: string
  hostIds: string[]
}

export type HoldKind = 'request' | 'reservation' | 'operation'

export const holdGpus = (tx: Tx, heldFor: string, heldKind: HoldKind, gpuIds: string[]) =>
  hold.run(tx, { gpuIds, heldFor, heldKind })

/** A host with its GPUs that are held for one request, reservation or operation. */
export interface HeldHost extends OpenHost {
  heldFor: string
}

const heldHosts = statement<HeldHost, Columns<{ heldFor: string; hostId: string }>>(
  'hold_hosts',
  `SELECT w.held_for AS "heldFor", h.id, h.name, h.location, h.family, g.count AS "freeGpus", g.gpus
   FROM unnest(:heldFor::uuid[], :hostId::uuid[]) WITH ORDINALITY AS w (held_for, host_id, ordinal)
   JOIN hosts h ON h.id = w.host_id AND h.is_schedulable AND h.state = 'up'
   CROSS JOIN LATERAL (
     SELECT count(*)::integer AS count, coalesce(json_agg(json_build_object('id', g.id, 'pciAddress', g.pci_address,
              'numaNode', g.numa_node, 'iommuGroup', g.iommu_group) ORDER BY g.pci_address), '[]') AS gpus
     FROM gpus g WHERE g.held_for = w.held_for AND g.state = 'held' AND g.host_id = h.id) g
   ORDER BY w.ordinal`,
)

/** Locks the hosts and returns them in the given order, each with the GPUs that are held there. */
export async function lockHeldHosts(
  tx: Tx,
  holds: { heldFor: string; hostId: string }[],
): Promise<HeldHost[]> {
  if (holds.length === 0) return []
  await lockHosts(
    tx,
    holds.map(({ hostId }) => hostId),
  )
  return heldHosts.all(tx, columns(holds, ['heldFor', 'hostId']))
}

/** Returns the placement of a VM on the GPUs that are held for a request; undefined if the hold is lost. */
export async function placeOnHold(
  tx: Tx,
  { heldFor, hostIds, gpuCount }: Hold & { gpuCount: number },
): Promise<{ hostId: string; gpuIds: string[]; heldFor: string } | undefined> {
  const [host] = await lockHeldHosts(
    tx,
    hostIds.map((hostId) => ({ heldFor, hostId })),
  )
  if (host?.freeGpus !== gpuCount) return undefined
  return { hostId: host.id, gpuIds: host.gpus.map(({ id }) => id), heldFor }
}
