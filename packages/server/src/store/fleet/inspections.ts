import type { Queryable } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

// Selects the next hosts by name, and the hosts (except those that are down) whose GPUs have waited longest
// for a reset. The position is advanced before the inspection, so that an inspection that fails never blocks
// other hosts. One extra name is read to see whether more hosts follow.
const begin = statement<
  {
    number: number
    now: Date
    is_whole: boolean
    names: string[]
    has_quarantined: boolean
    has_faults: boolean
  },
  { location: string; limit: number; maxGpus: number }
>(
  'host_inspection_begin',
  `WITH next AS MATERIALIZED (
     SELECT l.inspected_up_to = '' AS is_first, ARRAY(
       SELECT h.name FROM hosts h WHERE h.location = l.name AND h.name > l.inspected_up_to
       ORDER BY h.name LIMIT :limit + 1) AS names
     FROM locations l WHERE l.name = :location),
   waiting AS (
     SELECT g.host FROM (
       SELECT h.name AS host, g.quarantined_at FROM gpus g JOIN hosts h ON h.id = g.host_id
       WHERE g.state = 'quarantined' AND NOT g.is_held_back AND h.location = :location AND h.state <> 'down'
       ORDER BY g.quarantined_at LIMIT :maxGpus) g
     GROUP BY g.host ORDER BY min(g.quarantined_at) LIMIT :limit)
   UPDATE locations SET inspections = inspections + 1,
     inspected_up_to = CASE WHEN cardinality(next.names) > :limit THEN next.names[:limit] ELSE '' END
   FROM next CROSS JOIN moment t WHERE name = :location
   RETURNING inspections AS number, t.now, next.is_first AND cardinality(next.names) <= :limit AS is_whole,
             next.names[1:(:limit)] || ARRAY(SELECT host FROM waiting) AS names,
             EXISTS (SELECT FROM gpus g JOIN hosts h ON h.id = g.host_id
                     WHERE g.state = 'quarantined' AND NOT g.is_held_back AND h.location = :location) AS has_quarantined,
             EXISTS (SELECT FROM gpus g JOIN hosts h ON h.id = g.host_id
                     WHERE (g.lost_at IS NOT NULL OR g.host_xids IS NOT NULL) AND h.location = :location) AS has_faults`,
)

// Reads an index of the hosts that are down, which are few.
const down = statement<{ id: string }, { location: string }>(
  'host_first_down',
  `SELECT id FROM hosts WHERE state = 'down' AND forgotten_at IS NULL AND location = :location LIMIT 1`,
)

const gpusPerHost = 8

export interface Inspection {
  /** Later inspections have higher numbers. */
  number: number
  /** A time of the database's clock. */
  begunAt: Date
  /** Returns whether a host is inspected in detail, which is true for at most `2 * limit` hosts. */
  isDetailed: (host: string) => boolean
  /** True if a GPU of the location waits for its reset. */
  hasQuarantined: boolean
  /** True if a host of the location reports a fault of a GPU. */
  hasFaults: boolean
}

export async function beginInspection(db: Queryable, location: string, limit: number): Promise<Inspection> {
  const { number, now, is_whole, names, has_quarantined, has_faults } = (await begin.one(db, {
    location,
    limit,
    maxGpus: limit * gpusPerHost,
  }))!
  const selected = new Set(names)
  const isDetailed = is_whole ? () => true : (host: string) => selected.has(host)
  return { number, begunAt: now, isDetailed, hasQuarantined: has_quarantined, hasFaults: has_faults }
}

export const hasDownHosts = async (db: Queryable, location: string): Promise<boolean> =>
  (await down.one(db, { location })) !== undefined
