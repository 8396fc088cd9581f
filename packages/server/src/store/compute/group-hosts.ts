import type { OpenHost } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import type { PlacementRequest } from './host-locks.ts'
import { bestFirst, fits } from './placement.ts'

interface GangParams extends PlacementRequest {
  /** Hosts that are locked already, or must not be used. */
  except: string[]
  most: number
}

const here = `${fits(':location', ':family', ':gpuCount::integer')} AND h.id <> ALL (:except::uuid[])
   AND coalesce(h.id = ANY (:allowedHosts::uuid[]), true)`

// Waits for the locks of the hosts in the order of their ids, like every change of GPUs.
const lockWith = (name: string, order: string) =>
  statement<{ id: string }, GangParams>(
    `host_lock_gang_${name}`,
    `SELECT h.id FROM hosts h
     WHERE h.id = ANY (ARRAY(SELECT h.id FROM hosts h WHERE ${here} ${order} LIMIT :most::integer))
     ORDER BY h.id FOR NO KEY UPDATE`,
  )
const lockFullest = lockWith('fullest', bestFirst)
const lockEmptiest = lockWith('emptiest', 'ORDER BY h.free_gpus DESC, h.id DESC')

// A statement after the locks sees the changes of their previous holders.
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

/** Locks up to `most` hosts with room for at least one VM, the fullest or the emptiest ones. */
export async function lockHostsForGang(tx: Tx, params: GangParams, isPacked: boolean): Promise<OpenHost[]> {
  const locked = await (isPacked ? lockEmptiest : lockFullest).all(tx, params)
  return locked.length === 0 ? [] : open.all(tx, { ids: locked.map(({ id }) => id) })
}

/** Lists how many VMs of this size fit in each location now, and on how many hosts, in catalogue order. */
export const listGangRoom = (tx: Tx, params: { family: string; gpuCount: number }) => room.all(tx, params)
