import type { Family, ReservationState } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { ifGiven, isBefore, type PageParams, statement } from '../../postgres/statement.ts'
import type { Queue } from './queues.ts'

export interface ReservationRow {
  id: string
  organization_id: string
  billing_project_id: string
  projects: string[]
  type: string
  family: Family
  unit_gpus: number
  location: string
  quantity: number
  starts_at: Date
  ends_at: Date
  usd_per_gpu_hour: string
  metered_gpus: number
  delivered_at: Date | null
  is_short: boolean
  notices: number
  ended_at: Date | null
  created_at: Date
  state: ReservationState
  /** In whole months. */
  months: number
  /** The GPUs of the reservation by host, including those in use. */
  owned: { host_id: string; gpus: number }[]
  delivered_gpus: number
  used_gpus: number
  vm_ids: string[]
}

/** The product of a reservation's own meter, with the price of its contract. */
export const reservationProduct = (id: string) => `reservation-${id}`
/** The product of a VM that uses a reservation. It costs nothing. */
export const reservedProduct = (type: string) => `reserved-${type}`

/**
 * How long before the end of a reservation its warnings are sent. `dueNotices` is the number of those that are
 * due.
 */
const notices = ['30 days', '7 days', '24 hours', '1 hour']
const dueNotices = `(${notices
  .map((ahead) => `(upper(r.term) <= slipway_now() + interval '${ahead}')::integer`)
  .join(' + ')})`

const ownedByHost = `SELECT g.host_id, count(*)::integer AS gpus, count(g.vm_id)::integer AS used
  FROM gpus g WHERE g.held_for = r.id GROUP BY g.host_id`

// A unit counts as delivered when all its GPUs are on one host.
const rows = `SELECT r.id, r.organization_id, r.billing_project_id, r.projects, r.type, r.family, r.unit_gpus, r.location,
    r.quantity, lower(r.term) AS starts_at, upper(r.term) AS ends_at, trim_scale(r.usd_per_gpu_hour)::text AS usd_per_gpu_hour,
    r.metered_gpus, r.delivered_at, r.is_short, r.notices, r.ended_at, r.created_at, term_months(r.term) AS months,
    o.owned, o.delivered_gpus, o.used_gpus,
    CASE WHEN r.ended_at IS NOT NULL THEN 'ended' WHEN slipway_now() < lower(r.term) THEN 'scheduled'
         WHEN o.delivered_gpus < r.quantity THEN 'late' ELSE 'active' END AS state,
    ARRAY(SELECT v.id::text FROM vms v WHERE v.reservation_id = r.id AND v.deleted_at IS NULL ORDER BY v.id) AS vm_ids
  FROM reservations r CROSS JOIN LATERAL (
    SELECT coalesce(json_agg(json_build_object('host_id', h.host_id, 'gpus', h.gpus)), '[]') AS owned,
           least(r.quantity, coalesce(sum(h.gpus / r.unit_gpus * r.unit_gpus), 0))::integer AS delivered_gpus,
           coalesce(sum(h.used), 0)::integer AS used_gpus
    FROM (${ownedByHost}) h) o`

const list = statement<ReservationRow, { organizationId: string | null; status: string | null } & PageParams>(
  'reservation_list',
  `SELECT * FROM (${rows}) r WHERE ${ifGiven(':organizationId::uuid', 'r.organization_id = :organizationId')}
     AND ${isBefore('r.id')} AND ${ifGiven(':status::text', 'r.state = :status')}
   ORDER BY r.id DESC LIMIT :limit`,
)
const listOwn = statement<ReservationRow, { organizationId: string; status: string | null } & PageParams>(
  'reservation_list_own',
  `SELECT * FROM (${rows} WHERE r.organization_id = :organizationId) r
   WHERE ${isBefore('r.id')} AND ${ifGiven(':status::text', 'r.state = :status')} ORDER BY r.id DESC LIMIT :limit`,
)
export const listReservations = (
  db: Queryable,
  filter: { organizationId: string | null; status: string | null },
  beforeId: string | null,
  limit: number,
) =>
  filter.organizationId === null
    ? list.all(db, { ...filter, beforeId, limit })
    : listOwn.all(db, { ...filter, organizationId: filter.organizationId, beforeId, limit })

export const findReservation = statement<ReservationRow, { id: string }>(
  'reservation_find',
  `${rows} WHERE r.id = :id`,
).oneBy('id')

interface NewReservation {
  id: string
  organizationId: string
  billingProjectId: string
  projects: string[]
  type: string
  family: string
  unitGpus: number
  location: string
  quantity: number
  startsAt: Date
  endsAt: Date
  /** GPUs are held for the reservation from this time on. */
  collectsAt: Date
  usdPerGpuHour: string
  deliveryDeadline: Date | null
}

export const insertReservation = statement<never, NewReservation, Tx>(
  'reservation_insert',
  `INSERT INTO reservations (id, organization_id, billing_project_id, projects, type, family, unit_gpus, location, quantity, term,
     collects_at, usd_per_gpu_hour, delivery_deadline, due_at)
   VALUES (:id, :organizationId, :billingProjectId, :projects, :type, :family, :unitGpus, :location, :quantity,
     tstzrange(:startsAt, :endsAt), :collectsAt, :usdPerGpuHour::numeric, :deliveryDeadline, slipway_now())`,
).run

export const updateReservation = statement<
  { id: string },
  { id: string; endsAt: Date | null; projects: string[] | null },
  Tx
>(
  'reservation_update',
  `UPDATE reservations SET term = tstzrange(lower(term), coalesce(:endsAt, upper(term))),
     projects = coalesce(:projects::uuid[], projects), notices = CASE WHEN :endsAt::timestamptz IS NULL THEN notices ELSE 0 END,
     due_at = slipway_now()
   WHERE id = :id AND ended_at IS NULL RETURNING id`,
).one

export const listDueReservations = statement<{ id: string }>(
  'reservation_due',
  'SELECT id FROM reservations WHERE due_at <= slipway_now() ORDER BY due_at LIMIT 100',
).all

export const scheduleReservationCheck = statement<never, { id: string }, Tx>(
  'reservation_make_due',
  'UPDATE reservations SET due_at = slipway_now() WHERE id = :id AND ended_at IS NULL',
).runBy('id')

/** Locks the reservation until the transaction ends. */
export const lockReservation = statement<{ id: string }, { id: string }, Tx>(
  'reservation_lock',
  'SELECT id FROM reservations WHERE id = :id AND ended_at IS NULL FOR NO KEY UPDATE',
).oneBy('id')

/**
 * Records the state of a reservation after the check that began at `checkedAt`. The next check is due at the
 * reservation's next date after that time (collection, start, end or a warning), or after `retryS`. A date that
 * has passed during the check makes the reservation due again at once.
 */
export const recordDelivery = statement<
  { due_notices: number },
  {
    id: string
    checkedAt: Date
    meteredGpus: number
    isDelivered: boolean
    isShort: boolean
    retryS: number | null
  },
  Tx
>(
  'reservation_note',
  `UPDATE reservations r SET metered_gpus = :meteredGpus, is_short = :isShort, notices = greatest(notices, ${dueNotices}),
     delivered_at = coalesce(delivered_at, CASE WHEN :isDelivered THEN slipway_now() END),
     due_at = (SELECT min(at) FROM (VALUES (collects_at), (lower(term)), (upper(term)),
                 ${notices.map((ahead) => `(upper(term) - interval '${ahead}')`).join(', ')},
                 (slipway_now() + :retryS * interval '1 second')) AS next (at)
               WHERE at > :checkedAt)
   WHERE id = :id RETURNING ${dueNotices} AS due_notices`,
).one

export const setEnded = statement<{ id: string }, { id: string }, Tx>(
  'reservation_end',
  `UPDATE reservations SET ended_at = slipway_now(), due_at = NULL, metered_gpus = 0,
     term = CASE WHEN slipway_now() < upper(term) AND slipway_now() > lower(term) THEN tstzrange(lower(term), slipway_now()) ELSE term END
   WHERE id = :id AND ended_at IS NULL RETURNING id`,
).oneBy('id')

export interface ShortReservation {
  id: string
  unit_gpus: number
  missing: number
  owned: { host_id: string; gpus: number }[]
}

/**
 * Lists the reservations of a queue that lack GPUs and are collecting them, earliest first. The transaction has
 * locked the queue.
 */
export const listShortReservations = statement<ShortReservation, Queue>(
  'reservation_short',
  `SELECT r.id, r.unit_gpus, (r.quantity - o.gpus)::integer AS missing, o.owned
   FROM reservations r CROSS JOIN LATERAL (
     SELECT coalesce(sum(h.gpus), 0) AS gpus,
            coalesce(json_agg(json_build_object('host_id', h.host_id, 'gpus', h.gpus)), '[]') AS owned
     FROM (${ownedByHost}) h) o
   WHERE r.location = :location AND r.family = :family AND r.ended_at IS NULL AND o.gpus < r.quantity
     AND slipway_now() >= r.collects_at AND slipway_now() < upper(r.term)
   ORDER BY lower(r.term), r.id`,
).all

/** Lists the hosts of a queue that have free GPUs, those with the most free GPUs first. */
export const listStockHosts = statement<{ id: string }, Queue>(
  'reservation_stock_hosts',
  `SELECT id FROM hosts WHERE location = :location AND family = :family AND is_schedulable AND state = 'up' AND free_gpus > 0
   ORDER BY free_gpus DESC, id LIMIT 200`,
).all

/** Removes all GPUs from a reservation. The transaction has locked their hosts. */
export const releaseReservedGpus = statement<never, { id: string }, Tx>(
  'reservation_release',
  `UPDATE gpus SET state = CASE state WHEN 'held' THEN 'free' ELSE state END, held_for = NULL, held_kind = NULL
   WHERE held_for = :id`,
).runBy('id')

/** Assigns the GPUs of a VM to the reservation, or to none. The transaction has locked their host. */
export const setReservationOfGpus = statement<never, { vmId: string; id: string | null }, Tx>(
  'reservation_set_gpus',
  `UPDATE gpus SET held_for = :id, held_kind = CASE WHEN :id::uuid IS NOT NULL THEN 'reservation' END WHERE vm_id = :vmId`,
).runBy('vmId', 'id')

export const setReservationOfVm = statement<never, { vmId: string; id: string | null }, Tx>(
  'reservation_set_vm',
  'UPDATE vms SET reservation_id = :id, updated_at = slipway_now() WHERE id = :vmId',
).runBy('vmId', 'id')

/** Locks the VMs that use a reservation, in the order of their ids. */
export const lockVmsOfReservation = statement<{ id: string }, { id: string }, Tx>(
  'reservation_lock_vms',
  'SELECT id FROM vms WHERE reservation_id = :id ORDER BY id FOR NO KEY UPDATE',
).allBy('id')
