import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

interface Stock {
  location: string
  family: string
}

const hosts = `SELECT id FROM hosts WHERE location = :location AND family = :family AND is_schedulable AND state = 'up'`

const lock = statement<{ id: string }, Stock>('dev_capacity_lock', `${hosts} ORDER BY id FOR UPDATE`)

const release = statement<never, Stock>(
  'dev_capacity_release',
  `UPDATE gpus SET state = 'free', is_held_back = false, quarantined_at = NULL
   WHERE is_held_back AND state = 'quarantined' AND host_id IN (${hosts})`,
)

const free = statement<{ host_id: string; ids: string[] }, Stock>(
  'dev_capacity_free',
  `SELECT host_id, array_agg(id ORDER BY numa_node, pci_address) AS ids FROM gpus
   WHERE state = 'free' AND host_id IN (${hosts}) GROUP BY host_id ORDER BY host_id`,
)

const hold = statement<never, { ids: string[] }>(
  'dev_capacity_hold',
  `UPDATE gpus SET state = 'quarantined', is_held_back = true, quarantined_at = slipway_now()
   WHERE id = ANY (:ids::uuid[])`,
)

/**
 * Holds back free GPUs of the family so that exactly `vms` VMs with `gpuCount` GPUs each fit. If fewer
 * fit, returns how many fit and holds back no GPUs.
 */
export async function limitCapacity(tx: Tx, stock: Stock, gpuCount: number, vms: number): Promise<number> {
  await lock.all(tx, stock)
  await release.run(tx, stock)
  const rows = await free.all(tx, stock)
  const total = rows.reduce((sum, { ids }) => sum + Math.floor(ids.length / gpuCount), 0)
  if (total < vms) return total
  let left = vms
  const held = rows.flatMap(({ ids }) => {
    const kept = Math.min(left, Math.floor(ids.length / gpuCount))
    left -= kept
    return ids.slice(kept * gpuCount)
  })
  await hold.run(tx, { ids: held })
  return vms
}

/** Locks the hosts of the family in the location, and lists them. */
export const listHostIds = async (tx: Tx, stock: Stock): Promise<string[]> =>
  (await lock.all(tx, stock)).map(({ id }) => id)
