import { type FaultGrouping, type GpuFaultDay, maxFaultGroups } from '@slipway/contract'
import type { Queryable } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

interface FaultQuery {
  /** Null for all locations. */
  location: string | null
  /** The number of UTC days, including today. */
  days: number
  groupBy: FaultGrouping
  /** The XID errors that count as hardware faults. */
  suspectXids: number[]
}

// Returns at most one row for each day and group, plus one row for each day that sums up the other groups.
const faultDays = statement<GpuFaultDay, FaultQuery>(
  'gpu_fault_days',
  `WITH counted AS (
     SELECT to_char(f.at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS date,
            CASE :groupBy WHEN 'host' THEN h.id::text WHEN 'model' THEN g.model ELSE f.xid::text END AS key,
            min(h.name) FILTER (WHERE :groupBy = 'host') AS host, min(h.location) FILTER (WHERE :groupBy = 'host') AS location,
            count(*) FILTER (WHERE f.source = 'host' AND f.xid = ANY (:suspectXids::integer[])) AS host_faults,
            count(*) FILTER (WHERE f.source = 'guest' AND f.xid = ANY (:suspectXids::integer[])) AS guest_faults,
            count(*) FILTER (WHERE f.xid <> ALL (:suspectXids::integer[])) AS other_errors
     FROM moment t
     JOIN gpu_faults f ON f.at <= t.now
       AND f.at >= (date_trunc('day', t.now AT TIME ZONE 'UTC') - (:days::integer - 1) * interval '1 day') AT TIME ZONE 'UTC'
     JOIN gpus g ON g.id = f.gpu_id
     JOIN hosts h ON h.id = g.host_id AND h.location = coalesce(:location, h.location)
     GROUP BY 1, 2),
   ranked AS (
     SELECT key, row_number() OVER (ORDER BY sum(host_faults + guest_faults) DESC, sum(other_errors) DESC, key) AS rank
     FROM counted GROUP BY key)
   SELECT c.date, coalesce(min(c.host) FILTER (WHERE s.key <> ''), s.key) AS "group",
          CASE :groupBy WHEN 'host' THEN s.key ELSE '' END AS host_id,
          coalesce(min(c.location) FILTER (WHERE s.key <> ''), '') AS location,
          sum(c.host_faults)::integer AS host_faults, sum(c.guest_faults)::integer AS guest_faults,
          sum(c.other_errors)::integer AS other_errors
   FROM counted c JOIN ranked r ON r.key = c.key
   CROSS JOIN LATERAL (SELECT CASE WHEN r.rank <= ${maxFaultGroups} THEN c.key ELSE '' END AS key) s
   GROUP BY c.date, s.key
   ORDER BY c.date, min(r.rank)`,
)
export const countFaultsByDay = (db: Queryable, query: FaultQuery): Promise<GpuFaultDay[]> =>
  faultDays.all(db, query)
