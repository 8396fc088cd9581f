import { vmTypes } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import { fits } from '../compute/placement.ts'
import type { Queue } from './queues.ts'

/**
 * The entry of a request in a queue (a row of `capacity_places`), with the columns that are needed to offer GPUs
 * to the request.
 */
export interface QueueEntry {
  request_id: string
  turn: number
  /** The GPUs of one VM. */
  gpus: number
  /** One, or the number of members of a group. */
  vms: number
  host_id: string | null
}

const entryColumns = 'p.request_id, p.turn, p.gpus, p.vms, p.host_id'

/**
 * How many groups are examined when GPUs become free. Organizations take turns, so these groups belong to
 * several tenants.
 */
const maxGroups = 10

// Makes one index lookup for each size that fits, so that requests that do not fit are not read. The size is
// compared as a range (>= and <=) and the rows are ordered by it, because then only the index by size
// provides this order. With an equality condition, the planner would read the queue in order until it finds
// the size. For a group, the statement counts how many members fit. It reads only as many hosts as the group
// has members, those with the most free GPUs first, because a group never needs more.
const first = `SELECT ${entryColumns} FROM capacity_places p
         WHERE is_open AND vms = 1 AND p.location = l.location AND p.family = l.family AND p.gpus >= s.gpus AND p.gpus <= s.gpus
           AND request_id <> ALL (:skipped::uuid[])`
const next = statement<Queue & QueueEntry, { hostIds: string[]; sizes: number[]; skipped: string[] }>(
  'place_next',
  `WITH open AS MATERIALIZED (
     SELECT id, location, family, free_gpus FROM hosts
     WHERE id = ANY (:hostIds::uuid[]) AND is_schedulable AND state = 'up' AND free_gpus > 0)
   SELECT DISTINCT ON (l.location, l.family) l.location, l.family, p.*
   FROM (SELECT location, family, max(free_gpus) AS free FROM open GROUP BY location, family) l
   CROSS JOIN LATERAL (
     SELECT q.* FROM unnest(:sizes::integer[]) AS s (gpus) CROSS JOIN LATERAL (
       SELECT * FROM (${first} AND host_id IS NULL ORDER BY gpus, turn, request_id LIMIT 1) anywhere
       UNION ALL
       SELECT pinned.* FROM open h CROSS JOIN LATERAL (
         ${first} AND host_id = h.id ORDER BY gpus, turn, request_id LIMIT 1) pinned
       WHERE h.location = l.location AND h.family = l.family AND h.free_gpus >= s.gpus) q
     WHERE s.gpus <= l.free
     UNION ALL
     SELECT ${entryColumns} FROM (
       SELECT * FROM capacity_places g WHERE is_open AND vms > 1 AND g.location = l.location AND g.family = l.family
       ORDER BY turn, request_id LIMIT ${maxGroups}) p
     CROSS JOIN LATERAL (
       SELECT CASE WHEN p.is_spread THEN count(*) ELSE sum(h.free_gpus / p.gpus) END AS vms FROM (
         SELECT h.free_gpus FROM hosts h
         WHERE ${fits('l.location', 'l.family', 'p.gpus')} AND coalesce(h.id = p.host_id, true)
         ORDER BY h.free_gpus DESC, h.id DESC LIMIT p.vms) h) room
     WHERE p.gpus <= l.free AND room.vms >= p.vms AND p.request_id <> ALL (:skipped::uuid[])) p
   ORDER BY l.location, l.family, p.turn, p.request_id`,
)

const sizes = [...new Set(vmTypes.map(({ gpuCount }) => gpuCount))]

/**
 * Returns the first open entry that fits, in each queue for the GPUs of these hosts. Skips the requests in
 * `skipped`.
 */
export const findNextEntries = (
  tx: Tx,
  hostIds: string[],
  skipped: string[],
): Promise<(Queue & QueueEntry)[]> => next.all(tx, { hostIds, sizes, skipped })

/** Returns the first open entry for a single VM, and when its request was created. */
export const findHead = statement<QueueEntry & { created_at: Date }, Queue>(
  'place_head',
  `SELECT ${entryColumns}, r.created_at
   FROM (SELECT * FROM capacity_places WHERE is_open AND vms = 1 AND location = :location AND family = :family
         ORDER BY turn, request_id LIMIT 1) p
   JOIN capacity_requests r ON r.id = p.request_id`,
).one

// Sets the current turn of an empty queue to 0 and deletes the turns of organizations. The turns of
// organizations that may not get a hold yet are set to 0 instead. The transaction has locked the queue.
const forgetTurns = statement<never, Queue>(
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
// An organization's next turn is its last turn or the current turn of the queue, whichever is later, plus the
// number of GPUs of the request. The transaction has locked the queue.
const takeTurn = statement<{ turn: number }, Queue & { organizationId: string; gpus: number }>(
  'lane_take_turn',
  `INSERT INTO capacity_turns AS t (organization_id, location, family, last_turn)
   SELECT :organizationId, location, family, virtual_time + :gpus::integer FROM capacity_lanes
   WHERE location = :location AND family = :family
   ON CONFLICT (location, family, organization_id) DO UPDATE
     SET last_turn = greatest(excluded.last_turn, t.last_turn + :gpus::integer)
   RETURNING last_turn AS turn`,
)

/** The VMs that a request waits for in one queue. */
interface WantedVms {
  gpus: number
  vms: number
  isSpread: boolean
  hostId: string | null
}

const addEntry = statement<never, Queue & WantedVms & { requestId: string; turn: number }>(
  'place_insert',
  `INSERT INTO capacity_places (request_id, location, family, turn, gpus, vms, is_spread, host_id)
   VALUES (:requestId, :location, :family, :turn, :gpus, :vms, :isSpread, :hostId)`,
)

/** Adds a request after the other requests of its organization. The transaction has locked the queue. */
export async function queueRequest(
  tx: Tx,
  { location, family }: Queue,
  request: { id: string; organizationId: string } & WantedVms,
): Promise<void> {
  const { id: requestId, organizationId, ...wanted } = request
  await forgetTurns.run(tx, { location, family })
  const gpus = wanted.gpus * wanted.vms
  const { turn } = (await takeTurn.one(tx, { location, family, organizationId, gpus }))!
  await addEntry.run(tx, { location, family, requestId, turn, ...wanted })
}

const firstTurn = statement<{ turn: number }, Queue>(
  'place_first_turn',
  `SELECT least(0, coalesce((SELECT turn FROM capacity_places WHERE location = :location AND family = :family
                            ORDER BY turn LIMIT 1), 0)) - 1 AS turn`,
)

/** Adds a request in front of all others. The transaction has locked the queue. */
export async function queueFirst(
  tx: Tx,
  queue: Queue,
  { id: requestId, ...wanted }: { id: string } & WantedVms,
): Promise<void> {
  const { turn } = (await firstTurn.one(tx, queue))!
  await addEntry.run(tx, { ...queue, requestId, turn, ...wanted })
}

/** Opens or closes the entries of a request. The transaction has locked the queues of the request. */
export const setEntriesOpen = statement<never, { requestId: string; isOpen: boolean }, Tx>(
  'place_set_open',
  'UPDATE capacity_places SET is_open = :isOpen WHERE request_id = :requestId AND is_open <> :isOpen',
).runBy('requestId', 'isOpen')

/**
 * Removes the queue entries of a request that has ended, and keeps a copy in the row of the request. The
 * transaction has locked the queues of the request.
 */
export const deleteEntries = statement<never, { requestId: string }, Tx>(
  'place_delete',
  `WITH removed AS (DELETE FROM capacity_places WHERE request_id = :requestId RETURNING location, family, turn, gpus, vms, is_spread, host_id)
   UPDATE capacity_requests SET old_places = (SELECT json_agg(removed) FROM removed)
   WHERE id = :requestId AND EXISTS (SELECT FROM removed)`,
).runBy('requestId')

/** Restores the earlier queue entries of a request. The transaction has locked the queues of these entries. */
export const restoreEntries = statement<never, { requestId: string }, Tx>(
  'place_restore',
  `INSERT INTO capacity_places (request_id, location, family, turn, gpus, vms, is_spread, host_id)
   SELECT r.id, o.location, o.family, o.turn, o.gpus, coalesce(o.vms, 1), coalesce(o.is_spread, false), o.host_id
   FROM capacity_requests r CROSS JOIN json_to_recordset(r.old_places) AS o (
     location text, family text, turn bigint, gpus integer, vms integer, is_spread boolean, host_id uuid)
   WHERE r.id = :requestId ON CONFLICT DO NOTHING`,
).runBy('requestId')

export const listOldQueues = statement<Queue, { requestId: string }, Tx>(
  'place_old_lanes',
  `SELECT o.location, o.family FROM capacity_requests r
   CROSS JOIN json_to_recordset(r.old_places) AS o (location text, family text) WHERE r.id = :requestId`,
).allBy('requestId')
