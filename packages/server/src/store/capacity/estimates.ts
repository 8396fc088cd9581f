import type { Estimate } from '../../domain/capacity-estimate.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'
import type { Lane } from './lanes.ts'

interface LaneHostRow {
  id: string
  free: number
  vms: { gpus: number; ends_at: string | null; since: string }[]
}

// GPUs in quarantine will soon be free. The GPUs that the first request accumulates count as free for that request.
export const listLaneHosts = statement<LaneHostRow, Lane>(
  'estimate_hosts',
  `SELECT h.id,
          (SELECT count(*) FROM gpus g WHERE g.host_id = h.id AND (g.state = 'free'
             OR g.state = 'quarantined' AND NOT g.is_held_back AND g.held_for IS NULL
             OR g.state = 'held' AND g.held_for = (
               SELECT accumulator FROM capacity_lanes WHERE location = :location AND family = :family))) AS free,
          coalesce((SELECT json_agg(json_build_object('gpus', v.gpus, 'ends_at', v.ends_at, 'since', v.since)) FROM (
             SELECT count(*) AS gpus, min(v.expires_at) AS ends_at, min(coalesce(v.started_at, v.created_at)) AS since
             FROM gpus g JOIN vms v ON v.id = g.vm_id WHERE g.host_id = h.id AND g.held_for IS NULL GROUP BY v.id) v), '[]') AS vms
   FROM hosts h WHERE h.location = :location AND h.family = :family AND h.is_schedulable AND h.state = 'up'`,
).all

interface WaitingRow {
  request_id: string
  gpus: number
  host_id: string | null
  created_at: Date
  ttl_seconds: number | null
}

/** The first requests of a queue, in order. */
export const listWaiting = statement<WaitingRow, Lane & { most: number }>(
  'estimate_waiting',
  `SELECT p.request_id, p.gpus, p.host_id, r.created_at, (r.body -> 'vm' ->> 'ttl_seconds')::integer AS ttl_seconds
   FROM (SELECT * FROM capacity_places WHERE is_open AND location = :location AND family = :family
         ORDER BY turn, request_id LIMIT :most) p
   JOIN capacity_requests r ON r.id = p.request_id ORDER BY p.turn, p.request_id`,
).all

// The newest meters are read without a separate index, because every end of a meter would have to update it.
const lives = statement<{ ms: number }, { types: string[] }>(
  'estimate_lives',
  `SELECT extract(epoch FROM upper(u.period) - lower(u.period)) * 1000 AS ms
   FROM (SELECT * FROM usage_intervals ORDER BY id DESC LIMIT 5000) u
   WHERE u.resource_type = 'vm' AND u.product_name = ANY (:types) AND NOT upper_inf(u.period)
     AND upper(u.period) > slipway_now() - interval '30 days'
   ORDER BY 1`,
)

/** Lists how long VMs of these types ran in the last 30 days, in ascending order. */
export const listLivesMs = async (db: Queryable, types: string[]): Promise<number[]> =>
  (await lives.all(db, { types })).map(({ ms }) => Number(ms))

interface EstimateRow {
  requestId: string
  earliestAt: Date | null
  likelyAt: Date | null
  latestAt: Date | null
  basis: string
}

const put = statement<never, Lane & Columns<EstimateRow>>(
  'estimate_put',
  `WITH new AS (
     SELECT * FROM unnest(:requestId::uuid[], :earliestAt::timestamptz[], :likelyAt::timestamptz[],
       :latestAt::timestamptz[], :basis::text[]) AS n (request_id, earliest_at, likely_at, latest_at, basis)),
   first AS (
     UPDATE capacity_requests r SET first_latest_at = new.latest_at FROM new
     WHERE r.id = new.request_id AND r.first_latest_at IS NULL AND new.latest_at IS NOT NULL)
   UPDATE capacity_places p SET earliest_at = new.earliest_at, likely_at = new.likely_at, latest_at = new.latest_at,
     basis = new.basis, estimated_at = slipway_now()
   FROM new WHERE p.request_id = new.request_id AND p.location = :location AND p.family = :family`,
)

// A request that ended without a grant counts as late, unless it ended before its estimated time.
const putLane = statement<never, Lane & { likelyAt: Date | null }>(
  'estimate_put_lane',
  `UPDATE capacity_lanes SET likely_at = :likelyAt, estimated_at = slipway_now(), hit_rate = (
     SELECT avg((coalesce(granted_at <= first_latest_at, false))::integer) FROM (
       SELECT granted_at, first_latest_at FROM capacity_requests
       WHERE due_at IS NULL AND first_latest_at IS NOT NULL
       ORDER BY updated_at DESC LIMIT 200) ended
     WHERE granted_at IS NOT NULL OR first_latest_at <= slipway_now())
   WHERE location = :location AND family = :family`,
)

const dateOf = (at: number | null) => (at === null ? null : new Date(at))

/** Writes the estimates of a queue, and the one for a request that would be added to it. */
export async function putEstimates(
  tx: Tx,
  { location, family }: Lane,
  estimates: Map<string, Estimate>,
  likelyAt: number | null,
): Promise<void> {
  const rows = [...estimates].map(([requestId, each]) => ({
    requestId,
    earliestAt: dateOf(each.earliestAt),
    likelyAt: dateOf(each.likelyAt),
    latestAt: dateOf(each.latestAt),
    basis: each.basis,
  }))
  const members = ['requestId', 'earliestAt', 'likelyAt', 'latestAt', 'basis'] as const
  if (rows.length > 0) await put.run(tx, { location, family, ...columns(rows, members) })
  await putLane.run(tx, { location, family, likelyAt: dateOf(likelyAt) })
}
