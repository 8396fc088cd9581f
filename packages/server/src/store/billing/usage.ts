import type { Labels, MeteredType } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

// If the clock went back, the interval begins where the resource's previous interval ended: the trigger
// function add_up_earlier_meters changes its start.
const openIntervals = statement<never, { metered: string }>(
  'usage_open',
  `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, resource_name, labels, product_name,
                                quantity, period, reservation_id)
   SELECT m."projectId", m.location, m."resourceType", m."resourceId", m."resourceName", m.labels, m."productName", m.quantity,
          tstzrange(slipway_now(), NULL), m."reservationId"
   FROM json_to_recordset(:metered::json) AS m ("projectId" uuid, location text, "resourceType" text,
                                                "resourceId" uuid, "resourceName" text, labels jsonb,
                                                "productName" text, quantity bigint, "reservationId" uuid)`,
)

/**
 * SQL for the end of an interval, in a statement that joins the current time as `t`. An interval lasts at
 * least a millisecond, even if the clock went back since it began, so that no usage is lost.
 */
export const endOfMeter = (beginning: string) => `greatest(t.now, ${beginning} + interval '1 millisecond')`

const closeIntervals = statement<never, { resourceIds: string[] }>(
  'usage_close',
  `UPDATE usage_intervals i
   SET period = tstzrange(lower(i.period), ${endOfMeter('lower(i.period)')})
   FROM unnest(:resourceIds::uuid[]) AS w (id) CROSS JOIN moment t
   WHERE i.resource_id = w.id AND upper_inf(i.period)`,
)

/**
 * Applies this name and these labels to all usage from today on. Intervals that ended today change too,
 * because they are not rolled up yet.
 */
export const relabelUsage = statement<never, { resourceIds: string[]; name: string; labels: Labels }, Tx>(
  'usage_relabel',
  `UPDATE usage_intervals i SET resource_name = :name, labels = :labels
   FROM unnest(:resourceIds::uuid[]) AS w (id)
   WHERE i.resource_id = w.id
     AND i.period && tstzrange(date_trunc('day', slipway_now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC', NULL)`,
).runBy('resourceIds', 'name', 'labels')

/**
 * Returns the cost of a resource until now; undefined if it was never metered. Its latest interval contains the
 * cost of the earlier intervals.
 */
export const findResourceCost = statement<
  { usd: string; now: Date },
  { projectId: string; resourceId: string }
>(
  'usage_resource_cost',
  `SELECT round((m.earlier_usd_ms + coalesce(metered_cost(m.product_name, m.quantity, m.period * tstzrange(NULL, t.now)), 0))
                / 3600000, 6)::text AS usd, t.now
   FROM (SELECT * FROM usage_intervals WHERE resource_id = :resourceId ORDER BY id DESC LIMIT 1) m CROSS JOIN moment t
   WHERE m.project_id = :projectId`,
).oneBy('projectId', 'resourceId')

export interface Metered {
  projectId: string
  location: string
  resourceType: MeteredType
  resourceId: string
  resourceName: string
  labels: Labels
  productName: string
  /** 1 for a VM, GB for a disk, image or snapshot, GPUs for a reservation. */
  quantity: number
  /** The reservation that a VM uses. */
  reservationId?: string
}

/**
 * Call this in the transaction that makes the resource billable. The schema rejects overlapping intervals of
 * a resource.
 */
export const openUsage = (tx: Tx, metered: Metered): Promise<void> => tx.enqueue(writeOpenings, metered)

const writeOpenings = (tx: Tx, metered: Metered[]) =>
  openIntervals.run(tx, { metered: JSON.stringify(metered) })

export const closeUsage = (tx: Tx, resourceId: string): Promise<void> => tx.enqueue(writeClosings, resourceId)

const writeClosings = (tx: Tx, resourceIds: string[]) => closeIntervals.run(tx, { resourceIds })
