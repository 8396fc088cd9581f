import type { Tx } from '../database.ts'
import { statement } from '../statement.ts'

const openInterval = statement<never, Metered>(
  'usage_open',
  `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
   VALUES (:projectId, :location, :resourceType, :resourceId, :productName, :quantity, tstzrange(slipway_now(), NULL))`,
)

// An interval that opened and closes in the same millisecond never was.
const dropEmpty = statement<never, { resourceId: string }>(
  'usage_drop_empty',
  `DELETE FROM usage_intervals
   WHERE resource_id = :resourceId AND upper_inf(period) AND lower(period) >= slipway_now()`,
)
const closeInterval = statement<never, { resourceId: string }>(
  'usage_close',
  `UPDATE usage_intervals SET period = tstzrange(lower(period), slipway_now())
   WHERE resource_id = :resourceId AND upper_inf(period) AND lower(period) < slipway_now()`,
)

export interface Metered {
  projectId: string
  location: string
  resourceType: 'vm' | 'disk'
  resourceId: string
  productName: string
  /** 1 for a VM, GB for a disk. */
  quantity: number
}

/** The transaction is the one that makes it billable. The schema refuses a second interval at the same time. */
export const openUsage = (tx: Tx, m: Metered) => openInterval.run(tx, m)

export async function closeUsage(tx: Tx, resourceId: string): Promise<void> {
  await dropEmpty.run(tx, { resourceId })
  await closeInterval.run(tx, { resourceId })
}
