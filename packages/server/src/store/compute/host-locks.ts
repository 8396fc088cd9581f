import type { Family } from '@slipway/contract'
import type { OpenHost } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Statement, statement } from '../../postgres/statement.ts'
import { bestFirst, existsHost, fits } from './placement.ts'

export interface PlacementRequest {
  location: string
  family: Family
  gpuCount: number
  /** The host of the VM's disks, if they are local; null for any host. */
  allowedHosts: string[] | null
}

/**
 * VMs with the same request share one row `w`. These rows have nothing to do with instance groups. In this
 * file, `held` are the hosts that the transaction has already locked; they have nothing to do with held GPUs.
 */
const groups = `json_to_recordset(:groups::json) AS w (location text, family text, "gpuCount" integer,
                                                       "allowedHosts" uuid[], vms integer)`
const isNotHeld = 'h.id <> ALL (:held::uuid[])'
const fitsGroup = `${fits('w.location', 'w.family', 'w."gpuCount"')} AND ${isNotHeld}`
const isAllowed = 'h.id = ANY (w."allowedHosts")'

// Locks only as many of the best hosts as the VMs of a row `w` need. It skips hosts that other transactions
// have locked, and takes emptier ones instead. GPUs are read as they were before the locks; if they have
// changed since, the claim fails.
const lockHosts = (name: string, condition: string, room: string) =>
  statement<OpenHost, { groups: string; held: string[] }>(
    `host_lock_${name}`,
    `SELECT h.id, h.name, h.location, h.family, h.free_gpus AS "freeGpus",
            coalesce((SELECT json_agg(json_build_object('id', g.id, 'pciAddress', g.pci_address,
                        'numaNode', g.numa_node, 'iommuGroup', g.iommu_group) ORDER BY g.pci_address)
                      FROM gpus g WHERE g.host_id = h.id AND g.state = 'free'), '[]') AS gpus
     FROM ${groups} CROSS JOIN LATERAL (
       SELECT h.id, h.name, h.location, h.family, h.free_gpus FROM hosts h WHERE ${condition} ${bestFirst}
       LIMIT CASE WHEN w.vms = 1 THEN 1 ELSE (
         SELECT count(*) FROM (
           SELECT coalesce(sum(${room} / w."gpuCount") OVER
                    (${bestFirst} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS room_before
           FROM (SELECT h.id, h.free_gpus, h.max_node_free FROM hosts h WHERE ${condition} ${bestFirst}
                 LIMIT w.vms) h) best
         WHERE best.room_before < w.vms) END
       FOR NO KEY UPDATE SKIP LOCKED) h`,
  )

/**
 * Hosts that can keep a VM inside one NUMA node come first. The GPU count is part of the statement text, so
 * that a partial index can be used. A single GPU is always inside one node, and a type that uses a whole host
 * never is.
 */
const inOneNode: Record<number, Statement<OpenHost, { groups: string; held: string[] }>> = {
  2: lockHosts('node_2', `${fitsGroup} AND h.max_node_free >= 2`, 'h.max_node_free'),
  4: lockHosts('node_4', `${fitsGroup} AND h.max_node_free >= 4`, 'h.max_node_free'),
}
const anyNode = lockHosts('free', fitsGroup, 'h.free_gpus')
// Does not prefer hosts with room in one NUMA node: there are few allowed hosts, and the placement chooses
// among them.
const allowed = lockHosts('allowed', `${isAllowed} AND ${fitsGroup}`, 'h.free_gpus')

type OneRequest = PlacementRequest & { held: string[] }

const here = `${fits(':location', ':family', ':gpuCount')} AND ${isNotHeld}`
const hereAllowed = `h.id = ANY (:allowedHosts::uuid[]) AND ${here}`
const fitsNow = (name: string, condition: string) =>
  statement<{ fits: boolean }, OneRequest>(`host_fits_${name}`, `SELECT ${existsHost(condition)} AS fits`)
const waitFor = (name: string, condition: string) =>
  statement<{ id: string }, OneRequest>(
    `host_await_${name}`,
    `SELECT h.id FROM hosts h WHERE ${condition} ${bestFirst} LIMIT 1 FOR NO KEY UPDATE`,
  )
const anywhere = { fits: fitsNow('anywhere', here), wait: waitFor('anywhere', here) }
const amongAllowed = { fits: fitsNow('allowed', hereAllowed), wait: waitFor('allowed', hereAllowed) }
const statementsFor = ({ allowedHosts }: PlacementRequest) => (allowedHosts ? amongAllowed : anywhere)

/** Returns whether only some hosts can keep a VM of this size inside one NUMA node. */
export const hasNodePreference = ({ gpuCount }: PlacementRequest): boolean => gpuCount in inOneNode

/**
 * Locks the best hosts for these VMs, except those that other transactions have locked and those in `held`.
 * Returns them with their free GPUs. With `isInOneNode`, only hosts that keep each VM inside one NUMA node
 * are used.
 */
export async function lockHostsFor(
  tx: Tx,
  requests: PlacementRequest[],
  isInOneNode: boolean,
  held: string[],
): Promise<OpenHost[]> {
  const byStatement = new Map<typeof anyNode, Map<string, PlacementRequest & { vms: number }>>()
  for (const request of requests) {
    const lock = request.allowedHosts ? allowed : isInOneNode ? inOneNode[request.gpuCount]! : anyNode
    const alike = byStatement.get(lock) ?? new Map<string, PlacementRequest & { vms: number }>()
    byStatement.set(lock, alike)
    const key = `${request.location} ${request.family} ${request.gpuCount} ${request.allowedHosts}`
    alike.set(key, { ...request, vms: (alike.get(key)?.vms ?? 0) + 1 })
  }
  const found = await Promise.all(
    [...byStatement].map(([lock, alike]) =>
      lock.all(tx, { groups: JSON.stringify([...alike.values()]), held }),
    ),
  )
  return [...new Map(found.flat().map((host) => [host.id, host])).values()]
}

/**
 * Returns whether a host that is not in `held` currently fits, whether or not another transaction has locked
 * it.
 */
export async function doesAnyHostFit(tx: Tx, request: PlacementRequest, held: string[]): Promise<boolean> {
  return (await statementsFor(request).fits.one(tx, { ...request, held }))!.fits
}

/** Waits for the lock on the best host. Only a later statement sees which of its GPUs are still free. */
export const waitForHostLock = (tx: Tx, request: PlacementRequest, held: string[]) =>
  statementsFor(request).wait.one(tx, { ...request, held })
