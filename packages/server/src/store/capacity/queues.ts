import type { Family } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'

/** The queue for the GPUs of one family at one location: a row of `capacity_lanes`. */
export interface Queue {
  location: string
  family: Family
}

export interface QueueRow extends Queue {
  /** The current turn of the queue. */
  virtual_time: number
  waiting: number
  /** The request for which the free GPUs of `target_host` are held until there are enough. */
  accumulator: string | null
  target_host: string | null
  accumulating_since: Date | null
  paused_until: Date | null
  due_at: Date | null
  /** True if there is a reservation for such GPUs that has not ended. */
  has_reservations: boolean
}

const queueColumns = `l.location, l.family, l.virtual_time, l.waiting, l.accumulator, l.target_host, l.accumulating_since,
  l.paused_until, l.due_at,
  EXISTS (SELECT FROM reservations r WHERE r.location = l.location AND r.family = l.family AND r.ended_at IS NULL) AS has_reservations`

export const findQueue = statement<QueueRow, Queue>(
  'lane_find',
  `SELECT ${queueColumns} FROM capacity_lanes l WHERE l.location = :location AND l.family = :family`,
).one

const wanted = 'unnest(:location::text[], :family::text[]) AS w (location, family)'

// Every transaction locks queues in the order of location and family.
const lock = statement<QueueRow, Columns<Queue>>(
  'lane_lock',
  `SELECT ${queueColumns} FROM ${wanted} JOIN capacity_lanes l ON l.location = w.location AND l.family = w.family
   ORDER BY l.location, l.family FOR NO KEY UPDATE OF l`,
)

const insert = statement<never, Columns<Queue>>(
  'lane_insert',
  `INSERT INTO capacity_lanes (location, family) SELECT w.location, w.family FROM ${wanted}
   ORDER BY w.location, w.family ON CONFLICT DO NOTHING`,
)

const openHosts = `hosts WHERE id = ANY (:hostIds::uuid[]) AND is_schedulable AND state = 'up' AND free_gpus > 0 AND family <> ''`
/** Lists the queues for the free GPUs of hosts. A queue that no request has ever used has no row. */
export const listQueuesOfHosts = statement<Queue, { hostIds: string[] }>(
  'lane_of_hosts',
  `SELECT DISTINCT location, family FROM ${openHosts}`,
).allBy('hostIds')
/** Locks the queues for the free GPUs of hosts, if they have a row. */
export const lockQueuesOfHosts = statement<QueueRow, { hostIds: string[] }, Tx>(
  'lane_lock_of_hosts',
  `SELECT ${queueColumns} FROM capacity_lanes l WHERE (l.location, l.family) IN (SELECT location, family FROM ${openHosts})
   ORDER BY l.location, l.family FOR NO KEY UPDATE OF l`,
).allBy('hostIds')

/**
 * Locks the queues until the transaction ends. Every transaction that adds to a queue or frees GPUs does this,
 * so that the later of two such transactions sees what the other has done.
 */
export async function lockQueues(tx: Tx, queues: Queue[]): Promise<QueueRow[]> {
  if (queues.length === 0) return []
  const params = columns(queues, ['location', 'family'])
  const locked = await lock.all(tx, params)
  if (locked.length === queues.length) return locked
  await insert.run(tx, params)
  return lock.all(tx, params)
}

const queuesOfRequest = statement<Queue, { requestId: string }>(
  'place_lanes',
  'SELECT location, family FROM capacity_places WHERE request_id = :requestId',
)

/** Locks the queues in which a request has an entry. */
export const lockQueuesOfRequest = async (tx: Tx, requestId: string): Promise<QueueRow[]> =>
  lockQueues(tx, await queuesOfRequest.all(tx, { requestId }))

/** Records the turn of a granted request as the current turn of the queue. */
export const recordTurn = statement<never, Queue & { turn: number }, Tx>(
  'lane_note_turn',
  `UPDATE capacity_lanes SET virtual_time = greatest(virtual_time, :turn) WHERE location = :location AND family = :family`,
).run

/**
 * Schedules an immediate check of the request's queues, because their estimates and their accumulation may
 * have changed.
 */
export const touchQueuesOfRequest = statement<never, { requestId: string }, Tx>(
  'lane_touch',
  `UPDATE capacity_lanes l SET due_at = slipway_now() FROM capacity_places p
   WHERE p.request_id = :requestId AND l.location = p.location AND l.family = p.family
     AND l.due_at IS DISTINCT FROM slipway_now()`,
).runBy('requestId')

/** Queues that need a check. While requests wait, estimates are at most a minute old. */
export const dueQueuesSql = `SELECT location, family FROM capacity_lanes
  WHERE due_at <= slipway_now() OR waiting > 0 AND coalesce(estimated_at < slipway_now() - interval '60 seconds', true)`

export const listDueQueues = statement<Queue>('lane_due', dueQueuesSql).all

const setAccumulator = statement<never, Queue & { requestId: string | null; hostId: string | null }>(
  'lane_accumulate',
  `UPDATE capacity_lanes SET accumulator = :requestId, target_host = :hostId,
     accumulating_since = CASE WHEN :requestId::uuid IS NOT NULL THEN slipway_now() END
   WHERE location = :location AND family = :family`,
)
export const startAccumulating = (tx: Tx, { location, family }: Queue, requestId: string, hostId: string) =>
  setAccumulator.run(tx, { location, family, requestId, hostId })
export const stopAccumulating = (tx: Tx, { location, family }: Queue) =>
  setAccumulator.run(tx, { location, family, requestId: null, hostId: null })

export const pauseAccumulating = statement<never, Queue & { seconds: number }, Tx>(
  'lane_pause',
  `UPDATE capacity_lanes SET paused_until = slipway_now() + :seconds * interval '1 second'
   WHERE location = :location AND family = :family`,
).run

export const setQueueDue = statement<never, Queue & { dueAt: Date | null }, Tx>(
  'lane_set_due',
  'UPDATE capacity_lanes SET due_at = :dueAt WHERE location = :location AND family = :family',
).run

export interface QueueOutlook {
  waiting: number
  /** When a new request would probably be granted; null if there is no estimate. */
  likely_at: Date | null
}

/**
 * The length of a queue, and the estimate for a new request with this number of GPUs. An estimate that is older than a
 * minute, or whose time has passed, is not used.
 */
export const findQueueOutlook = statement<QueueOutlook, Queue & { gpus: number }>(
  'lane_queue',
  `SELECT l.waiting, e.likely_at FROM capacity_lanes l LEFT JOIN LATERAL (
     SELECT (l.likely_at_by_gpus ->> :gpus::text)::timestamptz AS likely_at) e
     ON e.likely_at > slipway_now() AND l.estimated_at > slipway_now() - interval '60 seconds'
   WHERE l.location = :location AND l.family = :family`,
).one as (db: Queryable, queue: Queue & { gpus: number }) => Promise<QueueOutlook | undefined>

// Called when a hold was not used: the organization gets no new hold in this queue for some time.
export const refuseHolds = statement<
  never,
  { organizationId: string; location: string; family: string; seconds: number },
  Tx
>(
  'lane_refuse_holds',
  `UPDATE capacity_turns SET no_hold_until = slipway_now() + :seconds * interval '1 second'
   WHERE organization_id = :organizationId AND location = :location AND family = :family`,
).run
