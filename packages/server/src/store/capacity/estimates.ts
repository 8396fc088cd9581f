import type { Estimate } from '../../domain/capacity/estimate.ts'
import type { Queryable } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'
import type { Queue } from './queues.ts'

/** GPUs of one host that are free, that one VM uses, or that are reserved but unused. */
interface QueueGpusRow {
  host_id: string
  gpus: number
  vm_id: string | null
  ends_at: Date | null
  since: Date | null
  reserved_until: Date | null
}

// Includes GPUs in quarantine, which will soon be free, and GPUs that are being accumulated for the first
// request.
export const listQueueGpus = statement<QueueGpusRow, Queue>(
  'estimate_gpus',
  `SELECT g.host_id, count(*)::integer AS gpus, v.id AS vm_id, v.expires_at AS ends_at,
          coalesce(v.started_at, v.created_at) AS since,
          (SELECT upper(r.term) FROM reservations r WHERE r.id = g.held_for) AS reserved_until
   FROM hosts h JOIN gpus g ON g.host_id = h.id LEFT JOIN vms v ON v.id = g.vm_id
   WHERE h.location = :location AND h.family = :family AND h.is_schedulable AND h.state = 'up'
     AND (g.state IN ('free', 'claimed') OR g.state = 'quarantined' AND NOT g.is_held_back
       OR g.state = 'held' AND (g.held_kind = 'reservation' OR g.held_for = (
         SELECT accumulator FROM capacity_lanes WHERE location = :location AND family = :family)))
   GROUP BY g.host_id, v.id, g.held_for`,
).all

interface WaitingRow {
  request_id: string
  gpus: number
  vms: number
  is_spread: boolean
  host_id: string | null
  created_at: Date
  ttl_seconds: number | null
}

/** Lists the first requests of a queue, in order. */
export const listWaiting = statement<WaitingRow, Queue & { limit: number }>(
  'estimate_waiting',
  `SELECT p.request_id, p.gpus, p.host_id, r.created_at, p.vms, p.is_spread, r.ttl_seconds
   FROM (SELECT * FROM capacity_places WHERE is_open AND location = :location AND family = :family
         ORDER BY turn, request_id LIMIT :limit) p
   JOIN capacity_requests r ON r.id = p.request_id ORDER BY p.turn, p.request_id`,
).all

// Reads the newest meters without a separate index, because every meter that closes would have to update that
// index.
const runtimes = statement<{ ms: number }, { types: string[] }>(
  'estimate_lives',
  `SELECT extract(epoch FROM upper(u.period) - lower(u.period)) * 1000 AS ms
   FROM (SELECT * FROM usage_intervals ORDER BY id DESC LIMIT 5000) u
   WHERE u.resource_type = 'vm' AND u.product_name = ANY (:types) AND NOT upper_inf(u.period)
     AND upper(u.period) > slipway_now() - interval '30 days'
   ORDER BY 1`,
)

/** Lists how long VMs of these types ran, shortest first. Counts only runs that ended in the last 30 days. */
export const listRuntimesMs = async (db: Queryable, types: string[]): Promise<number[]> =>
  (await runtimes.all(db, { types })).map(({ ms }) => Number(ms))

interface EstimateRow {
  requestId: string
  earliestAt: Date | null
  likelyAt: Date | null
  latestAt: Date | null
  basis: string
}

const given = `unnest(:requestId::uuid[], :earliestAt::timestamptz[], :likelyAt::timestamptz[], :latestAt::timestamptz[],
  :basis::text[]) AS new (request_id, earliest_at, likely_at, latest_at, basis)`
// Skips rows that another transaction is changing: a request that is being granted needs no estimate, and
// waiting for its row could cause a deadlock.
const put = statement<never, Queue & Columns<EstimateRow>>(
  'estimate_put',
  `UPDATE capacity_places p SET earliest_at = new.earliest_at, likely_at = new.likely_at, latest_at = new.latest_at,
     basis = new.basis, estimated_at = slipway_now()
   FROM ${given} JOIN (
     SELECT request_id FROM capacity_places
     WHERE request_id = ANY (:requestId::uuid[]) AND location = :location AND family = :family
     FOR NO KEY UPDATE SKIP LOCKED) idle USING (request_id)
   WHERE p.request_id = new.request_id AND p.location = :location`,
)
const putFirst = statement<never, Columns<Pick<EstimateRow, 'requestId' | 'latestAt'>>>(
  'estimate_put_first',
  `UPDATE capacity_requests r SET first_latest_at = new.latest_at
   FROM unnest(:requestId::uuid[], :latestAt::timestamptz[]) AS new (id, latest_at) JOIN (
     SELECT id FROM capacity_requests WHERE id = ANY (:requestId::uuid[]) AND first_latest_at IS NULL
     FOR NO KEY UPDATE SKIP LOCKED) idle USING (id)
   WHERE r.id = new.id AND new.latest_at IS NOT NULL`,
)

// A request that ended without a grant counts as late, unless it ended before its estimated time.
const putQueue = statement<never, Queue & { likelyAtByGpus: string }>(
  'estimate_put_lane',
  `UPDATE capacity_lanes SET likely_at_by_gpus = :likelyAtByGpus, estimated_at = slipway_now(), hit_rate = (
     SELECT avg((coalesce(granted_at <= first_latest_at, false))::integer) FROM (
       SELECT granted_at, first_latest_at FROM capacity_requests
       WHERE due_at IS NULL AND first_latest_at IS NOT NULL
       ORDER BY updated_at DESC LIMIT 200) ended
     WHERE granted_at IS NOT NULL OR first_latest_at <= slipway_now())
   WHERE location = :location AND family = :family`,
)

const dateOf = (at: number | null) => (at === null ? null : new Date(at))

/** Writes the estimates of a queue, and those of new requests by their number of GPUs. Does not lock the queue. */
export async function putEstimates(
  db: Queryable,
  { location, family }: Queue,
  estimates: Map<string, Estimate>,
  likelyAtByGpus: Map<number, number>,
): Promise<void> {
  const rows = [...estimates].map(([requestId, each]) => ({
    requestId,
    earliestAt: dateOf(each.earliestAt),
    likelyAt: dateOf(each.likelyAt),
    latestAt: dateOf(each.latestAt),
    basis: each.basis,
  }))
  const members = ['requestId', 'earliestAt', 'likelyAt', 'latestAt', 'basis'] as const
  if (rows.length > 0) {
    await put.run(db, { location, family, ...columns(rows, members) })
    await putFirst.run(db, columns(rows, ['requestId', 'latestAt']))
  }
  const times = [...likelyAtByGpus].map(([gpus, at]) => [gpus, new Date(at)])
  await putQueue.run(db, { location, family, likelyAtByGpus: JSON.stringify(Object.fromEntries(times)) })
}
