import type { PlacementPolicyName } from '@slipway/contract'
import type { OpenHost } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import type { PlacementRequest } from './host-locks.ts'
import { bestFirst, fits } from './placement.ts'

interface GroupHostParams extends PlacementRequest {
  /** Hosts that are locked already, or must not be used. */
  except: string[]
  limit: number
}

const here = `${fits(':location', ':family', ':gpuCount::integer')} AND h.id <> ALL (:except::uuid[])
   AND coalesce(h.id = ANY (:allowedHosts::uuid[]), true)`

// Locks hosts in id order, as does every change of a GPU's state. `wait` waits for locked hosts; `skip` skips them.
const lockWith = (name: string, order: string) => {
  const lock = (prefix: string, waiting: string) =>
    statement<{ id: string }, GroupHostParams>(
      `host_${prefix}_gang_${name}`,
      `SELECT h.id FROM hosts h
       WHERE h.id = ANY (ARRAY(SELECT h.id FROM hosts h WHERE ${here} ${order} LIMIT :limit::integer))
       ORDER BY h.id FOR NO KEY UPDATE ${waiting}`,
    )
  return { wait: lock('lock', ''), skip: lock('try', 'SKIP LOCKED') }
}
const fullest = lockWith('fullest', bestFirst)
const emptiest = lockWith('emptiest', 'ORDER BY h.free_gpus DESC, h.id DESC')
const lockFor = (policy: PlacementPolicyName) => (policy === 'pack' ? emptiest : fullest)

// This is a separate statement after the locks, so that it sees what the previous holders of the locks have
// changed.
const open = statement<OpenHost, { ids: string[] }>(
  'host_open_gang',
  `SELECT h.id, h.name, h.location, h.family, h.free_gpus AS "freeGpus",
          coalesce((SELECT json_agg(json_build_object('id', g.id, 'pciAddress', g.pci_address,
                      'numaNode', g.numa_node, 'iommuGroup', g.iommu_group) ORDER BY g.pci_address)
                    FROM gpus g WHERE g.host_id = h.id AND g.state = 'free'), '[]') AS gpus
   FROM hosts h WHERE h.id = ANY (:ids::uuid[]) AND h.is_schedulable AND h.state = 'up' ORDER BY h.id`,
)

const room = statement<
  { location: string; vms: number; hosts: number },
  { family: string; gpuCount: number }
>(
  'host_gang_room',
  `SELECT l.name AS location, r.vms, r.hosts
   FROM locations l CROSS JOIN LATERAL (
     SELECT coalesce(sum(h.free_gpus / :gpuCount::integer), 0)::int AS vms, count(*)::int AS hosts FROM hosts h
     WHERE ${fits('l.name', ':family', ':gpuCount::integer')}) r
   ORDER BY l.position, l.name`,
)

const openHosts = async (tx: Tx, locked: { id: string }[]): Promise<OpenHost[]> =>
  locked.length === 0 ? [] : open.all(tx, { ids: locked.map(({ id }) => id) })

// Counts what the hosts in service could run if they were empty.
const offering = statement<
  { location: string; vms: number; hosts: number },
  { family: string; gpuCount: number }
>(
  'host_gang_offering',
  `SELECT l.name AS location, r.vms, r.hosts
   FROM locations l CROSS JOIN LATERAL (
     SELECT coalesce(sum(h.usable_gpus / :gpuCount::integer), 0)::int AS vms, count(*)::int AS hosts FROM hosts h
     WHERE h.is_schedulable AND h.state = 'up' AND h.location = l.name AND h.family = :family
       AND h.usable_gpus >= :gpuCount::integer) r
   ORDER BY l.position, l.name`,
)

/**
 * Locks up to `limit` hosts with room for at least one VM. The policy `pack` gets the emptiest hosts, because it
 * needs few hosts with much room on each. The other policies get the fullest ones, which leaves empty hosts to
 * large VMs.
 */
export const lockHostsForGroup = async (tx: Tx, params: GroupHostParams, policy: PlacementPolicyName) =>
  openHosts(tx, await lockFor(policy).wait.all(tx, params))

/** Like `lockHostsForGroup`, but skips hosts that other transactions have locked. */
export const tryLockHostsForGroup = async (tx: Tx, params: GroupHostParams, policy: PlacementPolicyName) =>
  openHosts(tx, await lockFor(policy).skip.all(tx, params))

/** Lists how many VMs of this size fit in each location now, and on how many hosts, in catalogue order. */
export const listGroupRoom = (tx: Tx, params: { family: string; gpuCount: number }) => room.all(tx, params)

/**
 * Lists how many VMs of this size each location could run if its hosts in service were empty, and on how many
 * hosts.
 */
export const listGroupOffering = (tx: Tx, { family, gpuCount }: { family: string; gpuCount: number }) =>
  offering.all(tx, { family, gpuCount })
