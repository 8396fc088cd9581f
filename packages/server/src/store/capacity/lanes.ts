import type { Family } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'

/** The queue for the GPUs of one family at one location. */
export interface Lane {
  location: string
  family: Family
}

export interface LaneRow extends Lane {
  virtual_time: number
  waiting: number
  accumulator: string | null
  target_host: string | null
  accumulating_since: Date | null
  paused_until: Date | null
  due_at: Date | null
  /** True if a reservation of such GPUs has not ended. */
  has_reservations: boolean
}

/** The place of a request in a queue, with the columns that an offer needs. */
export interface PlaceRow {
  request_id: string
  turn: number
  gpus: number
  host_id: string | null
}

const laneColumns = `l.location, l.family, l.virtual_time, l.waiting, l.accumulator, l.target_host, l.accumulating_since,
  l.paused_until, l.due_at,
  EXISTS (SELECT FROM reservations r WHERE r.location = l.location AND r.family = l.family AND r.ended_at IS NULL) AS has_reservations`

export const findLane = statement<LaneRow, Lane>(
  'lane_find',
  `SELECT ${laneColumns} FROM capacity_lanes l WHERE l.location = :location AND l.family = :family`,
).one

const wanted = 'unnest(:location::text[], :family::text[]) AS w (location, family)'

// Every transaction locks lanes in this order.
const lock = statement<LaneRow, Columns<Lane>>(
  'lane_lock',
  `SELECT ${laneColumns} FROM ${wanted} JOIN capacity_lanes l ON l.location = w.location AND l.family = w.family
   ORDER BY l.location, l.family FOR NO KEY UPDATE OF l`,
)

const insert = statement<never, Columns<Lane>>(
  'lane_insert',
  `INSERT INTO capacity_lanes (location, family) SELECT w.location, w.family FROM ${wanted}
   ORDER BY w.location, w.family ON CONFLICT DO NOTHING`,
)

const ofHosts = statement<Lane, { hostIds: string[] }>(
  'lane_of_hosts',
  `SELECT DISTINCT location, family FROM hosts
   WHERE id = ANY (:hostIds::uuid[]) AND is_schedulable AND state = 'up' AND free_gpus > 0 AND family <> ''`,
)

/**
 * Locks the queues until the transaction ends. Every transaction that adds to a queue or frees GPUs does this, so that the
 * later of two such transactions sees what the other has done.
 */
export async function lockLanes(tx: Tx, lanes: Lane[]): Promise<LaneRow[]> {
  if (lanes.length === 0) return []
  const params = columns(lanes, ['location', 'family'])
  const locked = await lock.all(tx, params)
  if (locked.length === lanes.length) return locked
  await insert.run(tx, params)
  return lock.all(tx, params)
}

/** Locks the queues for the GPUs of hosts that have free ones. */
export const lockLanesOfHosts = async (tx: Tx, hostIds: string[]): Promise<LaneRow[]> =>
  lockLanes(tx, await ofHosts.all(tx, { hostIds }))

// Makes one index lookup for each size that fits, so that requests that do not fit are not read. The order begins with the
// size, although each lookup has only one, so that PostgreSQL uses the index by size.
const next = statement<
  PlaceRow,
  Lane & { sizes: number[]; hostIds: string[]; free: number[]; passed: string[] }
>(
  'place_next',
  `SELECT p.* FROM unnest(:sizes::integer[]) AS s (gpus) CROSS JOIN LATERAL (
     SELECT * FROM (
       SELECT request_id, turn, gpus, host_id FROM capacity_places
       WHERE is_open AND host_id IS NULL AND location = :location AND family = :family AND gpus = s.gpus
         AND request_id <> ALL (:passed::uuid[])
       ORDER BY gpus, turn, request_id LIMIT 1) anywhere
     UNION ALL
     SELECT q.* FROM unnest(:hostIds::uuid[], :free::integer[]) AS h (id, free) CROSS JOIN LATERAL (
       SELECT request_id, turn, gpus, host_id FROM capacity_places
       WHERE is_open AND host_id = h.id AND gpus = s.gpus AND h.free >= s.gpus AND location = :location
         AND family = :family AND request_id <> ALL (:passed::uuid[])
       ORDER BY gpus, turn, request_id LIMIT 1) q) p
   ORDER BY p.turn, p.request_id LIMIT 1`,
)

/** Returns the first open place of the queue with one of the sizes. `hosts` are the hosts with free GPUs. */
export const findNextPlace = (
  tx: Tx,
  { location, family }: Lane,
  wantedPlace: { sizes: number[]; hosts: { id: string; freeGpus: number }[]; passed: string[] },
): Promise<PlaceRow | undefined> =>
  next.one(tx, {
    location,
    family,
    sizes: wantedPlace.sizes,
    hostIds: wantedPlace.hosts.map(({ id }) => id),
    free: wantedPlace.hosts.map(({ freeGpus }) => freeGpus),
    passed: wantedPlace.passed,
  })

/** Returns the first open place of the queue, with the time when its wait began. */
export const findHead = statement<PlaceRow & { created_at: Date }, Lane>(
  'place_head',
  `SELECT p.request_id, p.turn, p.gpus, p.host_id, r.created_at
   FROM (SELECT * FROM capacity_places WHERE is_open AND location = :location AND family = :family
         ORDER BY turn, request_id LIMIT 1) p
   JOIN capacity_requests r ON r.id = p.request_id`,
).one

// An organization's next turn comes after its last one and after the last granted turn, by the number of GPUs. The turns
// are deleted when the queue is empty. The transaction has locked the lane.
const forgetTurns = statement<never, Lane>(
  'lane_forget_turns',
  `WITH forgotten AS (
     UPDATE capacity_lanes l SET virtual_time = 0
     WHERE location = :location AND family = :family
       AND NOT EXISTS (SELECT FROM capacity_places p WHERE p.location = l.location AND p.family = l.family)
     RETURNING location, family),
   kept AS (
     UPDATE capacity_turns t SET last_turn = 0 FROM forgotten f
     WHERE t.location = f.location AND t.family = f.family AND t.no_hold_until >= slipway_now())
   DELETE FROM capacity_turns t USING forgotten f
   WHERE t.location = f.location AND t.family = f.family AND coalesce(t.no_hold_until < slipway_now(), true)`,
)
const takeTurn = statement<{ turn: number }, Lane & { organizationId: string; gpus: number }>(
  'lane_take_turn',
  `INSERT INTO capacity_turns AS t (organization_id, location, family, last_turn)
   SELECT :organizationId, location, family, virtual_time + :gpus::integer FROM capacity_lanes
   WHERE location = :location AND family = :family
   ON CONFLICT (location, family, organization_id) DO UPDATE
     SET last_turn = greatest(excluded.last_turn, t.last_turn + :gpus::integer)
   RETURNING last_turn AS turn`,
)
const addPlace = statement<
  never,
  Lane & { requestId: string; turn: number; gpus: number; hostId: string | null }
>(
  'place_insert',
  `INSERT INTO capacity_places (request_id, location, family, turn, gpus, host_id)
   VALUES (:requestId, :location, :family, :turn, :gpus, :hostId)`,
)

/** Adds a request after the other requests of its organization. The transaction has locked the lane. */
export async function queueRequest(
  tx: Tx,
  { location, family }: Lane,
  request: { id: string; organizationId: string; gpus: number; hostId: string | null },
): Promise<void> {
  const { id: requestId, organizationId, gpus, hostId } = request
  await forgetTurns.run(tx, { location, family })
  const { turn } = (await takeTurn.one(tx, { location, family, organizationId, gpus }))!
  await addPlace.run(tx, { location, family, requestId, turn, gpus, hostId })
}

/** Opens or closes the places of a request. The transaction has locked its lanes. */
export const setPlacesOpen = statement<never, { requestId: string; isOpen: boolean }, Tx>(
  'place_set_open',
  'UPDATE capacity_places SET is_open = :isOpen WHERE request_id = :requestId AND is_open <> :isOpen',
).runBy('requestId', 'isOpen')

/** Removes the places of a request that has ended, and saves them in its row. The transaction has locked its lanes. */
export const deletePlaces = statement<never, { requestId: string }, Tx>(
  'place_delete',
  `WITH gone AS (DELETE FROM capacity_places WHERE request_id = :requestId RETURNING location, family, turn, gpus, host_id)
   UPDATE capacity_requests SET old_places = (SELECT json_agg(gone) FROM gone)
   WHERE id = :requestId AND EXISTS (SELECT FROM gone)`,
).runBy('requestId')

/** Gives a request its old places back. The transaction has locked their lanes. */
export const restorePlaces = statement<never, { requestId: string }, Tx>(
  'place_restore',
  `INSERT INTO capacity_places (request_id, location, family, turn, gpus, host_id)
   SELECT r.id, o.location, o.family, o.turn, o.gpus, o.host_id FROM capacity_requests r
   CROSS JOIN json_to_recordset(r.old_places) AS o (location text, family text, turn bigint, gpus integer, host_id uuid)
   WHERE r.id = :requestId ON CONFLICT DO NOTHING`,
).runBy('requestId')

export const listOldLanes = statement<Lane, { requestId: string }, Tx>(
  'place_old_lanes',
  `SELECT o.location, o.family FROM capacity_requests r
   CROSS JOIN json_to_recordset(r.old_places) AS o (location text, family text) WHERE r.id = :requestId`,
).allBy('requestId')

const lanesOfRequest = statement<Lane, { requestId: string }>(
  'place_lanes',
  'SELECT location, family FROM capacity_places WHERE request_id = :requestId',
)

/** Locks the queues in which a request has a place. */
export const lockLanesOfRequest = async (tx: Tx, requestId: string): Promise<LaneRow[]> =>
  lockLanes(tx, await lanesOfRequest.all(tx, { requestId }))

/**
 * Records the turn of a granted request as the current turn of the queue.
 */
export const noteTurn = statement<never, Lane & { turn: number }, Tx>(
  'lane_note_turn',
  `UPDATE capacity_lanes SET virtual_time = greatest(virtual_time, :turn) WHERE location = :location AND family = :family`,
).run

/** Makes a check of the request's queues due now, because their estimates and what they accumulate may have changed. */
export const touchLanesOfRequest = statement<never, { requestId: string }, Tx>(
  'lane_touch',
  `UPDATE capacity_lanes l SET due_at = slipway_now() FROM capacity_places p
   WHERE p.request_id = :requestId AND l.location = p.location AND l.family = p.family
     AND l.due_at IS DISTINCT FROM slipway_now()`,
).runBy('requestId')

/** Queues that are due. While requests wait, estimates are at most a minute old. */
export const laneDue = `SELECT location, family FROM capacity_lanes
  WHERE due_at <= slipway_now() OR waiting > 0 AND coalesce(estimated_at < slipway_now() - interval '60 seconds', true)`

export const listDueLanes = statement<Lane>('lane_due', laneDue).all

const setAccumulator = statement<never, Lane & { requestId: string | null; hostId: string | null }>(
  'lane_accumulate',
  `UPDATE capacity_lanes SET accumulator = :requestId, target_host = :hostId,
     accumulating_since = CASE WHEN :requestId::uuid IS NOT NULL THEN slipway_now() END
   WHERE location = :location AND family = :family`,
)
export const startAccumulating = (tx: Tx, { location, family }: Lane, requestId: string, hostId: string) =>
  setAccumulator.run(tx, { location, family, requestId, hostId })
export const stopAccumulating = (tx: Tx, { location, family }: Lane) =>
  setAccumulator.run(tx, { location, family, requestId: null, hostId: null })

export const pauseAccumulating = statement<never, Lane & { seconds: number }, Tx>(
  'lane_pause',
  `UPDATE capacity_lanes SET paused_until = slipway_now() + :seconds * interval '1 second'
   WHERE location = :location AND family = :family`,
).run

export const setLaneDue = statement<never, Lane & { dueAt: Date | null }, Tx>(
  'lane_set_due',
  'UPDATE capacity_lanes SET due_at = :dueAt WHERE location = :location AND family = :family',
).run

/** The length of a queue, and the estimate for a new request if it is at most a minute old. */
export const findQueue = statement<{ waiting: number; likely_at: Date | null }, Lane>(
  'lane_queue',
  `SELECT waiting, CASE WHEN estimated_at > slipway_now() - interval '60 seconds' THEN likely_at END AS likely_at
   FROM capacity_lanes WHERE location = :location AND family = :family`,
).one as (db: Queryable, lane: Lane) => Promise<{ waiting: number; likely_at: Date | null } | undefined>

// Called after a hold was not claimed.
export const refuseHolds = statement<
  never,
  { organizationId: string; location: string; family: string; seconds: number },
  Tx
>(
  'lane_refuse_holds',
  `UPDATE capacity_turns SET no_hold_until = slipway_now() + :seconds * interval '1 second'
   WHERE organization_id = :organizationId AND location = :location AND family = :family`,
).run
