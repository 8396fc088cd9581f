import type { OpenHost } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import { bestFirst, fits } from '../compute/placement.ts'

// The transaction has locked the hosts. Only hosts that accept VMs are returned.
export const listOpenHosts = statement<OpenHost, { hostIds: string[] }, Tx>(
  'hold_open_hosts',
  `SELECT h.id, h.name, h.location, h.family, h.free_gpus AS "freeGpus",
          coalesce((SELECT json_agg(json_build_object('id', g.id, 'pciAddress', g.pci_address,
                      'numaNode', g.numa_node, 'iommuGroup', g.iommu_group) ORDER BY g.pci_address)
                    FROM gpus g WHERE g.host_id = h.id AND g.state = 'free'), '[]') AS gpus
   FROM hosts h
   WHERE h.id = ANY (:hostIds::uuid[]) AND h.is_schedulable AND h.state = 'up' AND h.free_gpus > 0 ORDER BY h.id`,
).allBy('hostIds')

/** Locks hosts in the order of their ids, like every statement that locks several hosts. */
export const lockHosts = statement<{ id: string }, { hostIds: string[] }, Tx>(
  'hold_lock_hosts',
  'SELECT id FROM hosts WHERE id = ANY (:hostIds::uuid[]) ORDER BY id FOR NO KEY UPDATE',
).allBy('hostIds')

/** Lists the best host for a request in each of its queues, if it fits there. */
export const listFittingHosts = statement<{ id: string }, { requestId: string }>(
  'hold_fitting_hosts',
  `SELECT h.id FROM capacity_places p CROSS JOIN LATERAL (
     SELECT h.id FROM hosts h
     WHERE ${fits('p.location', 'p.family', 'p.gpus')} AND coalesce(p.host_id = h.id, true)
     ${bestFirst} LIMIT 1) h
   WHERE p.request_id = :requestId AND p.is_open`,
).allBy('requestId')

/** Lists requests that have lost GPUs of their hold, because the host no longer reports them. */
export const listBrokenHolds = statement<{ id: string; host_id: string }, { hostIds: string[] }, Tx>(
  'hold_broken',
  `SELECT r.id, r.held_host AS host_id FROM capacity_requests r
   WHERE r.held_host = ANY (:hostIds::uuid[])
     AND r.gpus > (SELECT count(*) FROM gpus g WHERE g.held_for = r.id AND g.state = 'held' AND g.host_id = r.held_host)`,
).allBy('hostIds')

// The transaction fails if a GPU is no longer free.
const hold = statement<never, { gpuIds: string[]; heldFor: string; heldKind: HoldKind }>(
  'hold_gpus',
  `WITH held AS (
     UPDATE gpus SET state = 'held', held_for = :heldFor, held_kind = :heldKind
     WHERE id = ANY (:gpuIds::uuid[]) AND state = 'free' RETURNING id)
   SELECT assert_or_abort(count(*) = cardinality(:gpuIds::uuid[]), 'a GPU is not free any more') FROM held`,
)

/** Lists the GPUs that are held for a request or reservation, without those that its VMs use. */
export const listHeldGpus = statement<{ id: string; host_id: string }, { heldFor: string }, Tx>(
  'hold_list',
  `SELECT id, host_id FROM gpus WHERE held_for = :heldFor AND state = 'held' ORDER BY host_id, pci_address`,
).allBy('heldFor')

/**
 * Ends holds of a reservation, starting with the hosts that have the fewest of them. The transaction has locked the hosts.
 */
export const freeSomeHeld = statement<{ host_id: string }, { heldFor: string; count: number }, Tx>(
  'hold_free_some',
  `UPDATE gpus SET state = 'free', held_for = NULL, held_kind = NULL
   WHERE id = ANY (ARRAY(
     SELECT id FROM (SELECT id, count(*) OVER (PARTITION BY host_id) AS on_host FROM gpus
                     WHERE held_for = :heldFor AND state = 'held') held
     ORDER BY on_host, id LIMIT :count)) RETURNING host_id`,
).all

/** Ends holds. The transaction has locked the host. Returns the number of GPUs that are in stock again. */
export const endHolds = statement<never, { heldFor: string; hostId: string }, Tx>(
  'hold_end',
  `UPDATE gpus SET state = 'free', held_for = NULL, held_kind = NULL
   WHERE held_for = :heldFor AND host_id = :hostId AND state = 'held'`,
).runBy('heldFor', 'hostId')

/**
 * Ends the holds on hosts that no longer accept VMs. Returns the holders. The transaction has locked the hosts by changing
 * their state.
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

/** GPUs of a host that are held for a request or reservation. */
export interface Hold {
  heldFor: string
  hostId: string
}

export type HoldKind = 'request' | 'reservation' | 'operation'

export const holdGpus = (tx: Tx, heldFor: string, heldKind: HoldKind, gpuIds: string[]) =>
  hold.run(tx, { gpuIds, heldFor, heldKind })

const lockHeld = statement<{ host_id: string; gpu_ids: string[] }, { heldFor: string; hostId: string }, Tx>(
  'hold_lock',
  `WITH host AS MATERIALIZED (
     SELECT id FROM hosts WHERE id = :hostId AND is_schedulable AND state = 'up' FOR NO KEY UPDATE)
   SELECT host.id AS host_id, array_agg(g.id) AS gpu_ids
   FROM host JOIN gpus g ON g.host_id = host.id AND g.held_for = :heldFor AND g.state = 'held'
   GROUP BY host.id`,
).oneBy('heldFor', 'hostId')

/** Returns the placement of a VM on the GPUs that are held for a request on a host; undefined if the hold is lost. */
export async function placeOnHold(
  tx: Tx,
  { heldFor, hostId, gpuCount }: Hold & { gpuCount: number },
): Promise<{ hostId: string; gpuIds: string[] } | undefined> {
  const held = await lockHeld(tx, heldFor, hostId)
  return held?.gpu_ids.length === gpuCount ? { hostId: held.host_id, gpuIds: held.gpu_ids } : undefined
}
