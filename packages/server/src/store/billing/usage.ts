import type { Tx } from '../database.ts'
import { statement } from '../statement.ts'

const openIntervals = statement<never, { metered: string }>(
  'usage_open',
  `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
   SELECT m."projectId", m.location, m."resourceType", m."resourceId", m."productName", m.quantity,
          tstzrange(slipway_now(), NULL)
   FROM json_to_recordset(:metered::json) AS m ("projectId" uuid, location text, "resourceType" text,
                                                "resourceId" uuid, "productName" text, quantity bigint)`,
)

// An interval that opened and closes in the same millisecond never was.
const dropEmpty = statement<never, { resourceIds: string[] }>(
  'usage_drop_empty',
  `DELETE FROM usage_intervals
   WHERE resource_id = ANY (:resourceIds::uuid[]) AND upper_inf(period) AND lower(period) >= slipway_now()`,
)
const closeIntervals = statement<never, { resourceIds: string[] }>(
  'usage_close',
  `UPDATE usage_intervals SET period = tstzrange(lower(period), slipway_now())
   WHERE resource_id = ANY (:resourceIds::uuid[]) AND upper_inf(period) AND lower(period) < slipway_now()`,
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

/** The transaction is the one that makes them billable. The schema refuses a second interval at the same time. */
export const openUsages = (tx: Tx, metered: Metered[]) =>
  openIntervals.run(tx, { metered: JSON.stringify(metered) })
export const openUsage = (tx: Tx, metered: Metered) => openUsages(tx, [metered])

export async function closeUsages(tx: Tx, resourceIds: string[]): Promise<void> {
  if (resourceIds.length === 0) return
  await Promise.all([dropEmpty.run(tx, { resourceIds }), closeIntervals.run(tx, { resourceIds })])
}
export const closeUsage = (tx: Tx, resourceId: string) => closeUsages(tx, [resourceId])
