import type {
  CapacityRequestCreate,
  CapacityRequestState,
  Family,
  LabelSelector,
  Labels,
} from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { fitsLabels, type LabelParams, labelParams } from '../../postgres/labels.ts'
import { ifGiven, isBefore, type PageParams, statement } from '../../postgres/statement.ts'
import type { QuotaAmounts } from '../compute/quotas.ts'

export interface RequestRow {
  id: string
  organization_id: string
  project_id: string
  state: CapacityRequestState
  on_available: 'create' | 'hold'
  hold_seconds: number
  body: CapacityRequestCreate
  start_vm_id: string | null
  /** The VM whose GPUs are to be replaced. */
  replace_vm_id: string | null
  family: Family
  gpus: number
  /** The quota that the request uses when it is granted. */
  amounts: QuotaAmounts
  blocked_by: BlockReason | ''
  labels: Labels
  until: Date
  location: string
  /** The hosts whose GPUs are held for the request. */
  held_hosts: string[]
  held_until: Date | null
  granted_at: Date | null
  resource_id: string | null
  /**
   * The last creation or start. A waiting or held request has an operation only while a group that did not
   * boot is being removed.
   */
  operation_id: string | null
  failed_boots: number
  error: { code: string; message: string } | null
  actor: string
  request_id: string
  due_at: Date | null
  created_at: Date
  updated_at: Date
}

export type BlockReason = 'quota' | 'budget' | 'payment' | 'suspended'

/** A request with its best queue entry and the estimate there. */
export interface RequestRecordRow extends RequestRow {
  gpus_held: number
  /** The position up to 100; null beyond that, and for a request that does not wait. */
  position: number | null
  earliest_at: Date | null
  likely_at: Date | null
  latest_at: Date | null
  basis: 'expiries' | 'history' | 'none' | null
  estimated_at: Date | null
  hit_rate: number | null
}

const maxPosition = 100

// A waiting request has a queue entry. With several locations, the entry with the earliest estimate is shown.
// Positions are counted up to 100, so that the statement does not read more rows for a longer queue.
const records = `SELECT r.*, p.earliest_at, p.likely_at, p.latest_at, p.basis, p.estimated_at, p.hit_rate,
    (SELECT count(*) FROM gpus g WHERE g.held_for = r.id AND g.state = 'held')::integer AS gpus_held,
    CASE WHEN p.request_id IS NOT NULL THEN (
      SELECT CASE WHEN count(*) < ${maxPosition} THEN count(*) + 1 END FROM (
        SELECT FROM capacity_places o
        WHERE o.is_open AND o.location = p.location AND o.family = p.family
          AND (o.turn, o.request_id) < (p.turn, p.request_id) LIMIT ${maxPosition}) AS before) END AS position
  FROM capacity_requests r LEFT JOIN LATERAL (
    SELECT p.*, l.hit_rate FROM capacity_places p
    JOIN capacity_lanes l ON l.location = p.location AND l.family = p.family
    WHERE p.request_id = r.id ORDER BY p.likely_at, p.location LIMIT 1) p ON r.state = 'waiting'`

const list = statement<
  RequestRecordRow,
  { projectId: string; state: string | null } & LabelParams & PageParams
>(
  'capacity_request_list',
  `${records} WHERE r.project_id = :projectId AND ${isBefore('r.id')} AND ${ifGiven(':state::text', 'r.state = :state')}
     AND ${fitsLabels('r.labels')}
   ORDER BY r.id DESC LIMIT :limit`,
)

export const listRequestRecords = (
  db: Queryable,
  { projectId, state, labels }: { projectId: string; state: string | null; labels: LabelSelector | null },
  beforeId: string | null,
  limit: number,
) => list.all(db, { projectId, state, ...labelParams(labels), beforeId, limit })

/** Lists the unfinished requests of all tenants for the GPUs of a family, or of all families. */
export const listOpenRequestRecords = statement<
  RequestRecordRow,
  { location: string | null; family: string | null } & PageParams
>(
  'capacity_request_list_open',
  `${records} WHERE r.due_at IS NOT NULL AND ${isBefore('r.id')} AND ${ifGiven(':family::text', 'r.family = :family')}
     AND ${ifGiven(':location::text', 'EXISTS (SELECT FROM capacity_places o WHERE o.request_id = r.id AND o.location = :location)')}
   ORDER BY r.id DESC LIMIT :limit`,
).all

export const findRequestRecord = statement<RequestRecordRow, { projectId: string; id: string }>(
  'capacity_request_find',
  `${records} WHERE r.id = :id AND r.project_id = :projectId`,
).oneBy('projectId', 'id')

/** Finds a request of any project, without its queue entry. */
export const findRequest = statement<RequestRow, { id: string }>(
  'capacity_request_any',
  'SELECT * FROM capacity_requests WHERE id = :id',
).oneBy('id')

interface NewRequest {
  id: string
  organizationId: string
  projectId: string
  onAvailable: string
  holdSeconds: number
  body: string
  startVmId: string | null
  replaceVmId?: string
  family: string
  gpus: number
  ttlSeconds: number | null
  amounts: QuotaAmounts
  labels: Labels
  until: Date | null
  actor: string
  requestId: string
}

// The request is due immediately, because the GPUs it needs may be free.
const insert = statement<RequestRow, Omit<NewRequest, 'replaceVmId'> & { replaceVmId: string | null }>(
  'capacity_request_insert',
  `INSERT INTO capacity_requests (id, organization_id, project_id, on_available, hold_seconds, body, start_vm_id, replace_vm_id, family, gpus,
     ttl_seconds, amounts, labels, until, actor, request_id, due_at)
   VALUES (:id, :organizationId, :projectId, :onAvailable, :holdSeconds, :body, :startVmId, :replaceVmId, :family, :gpus, :ttlSeconds, :amounts, :labels,
     coalesce(:until, slipway_now() + interval '7 days'), :actor, :requestId, slipway_now())
   RETURNING *`,
)

/** Violates `capacity_requests_start` if a request for the stopped VM is already waiting. */
export const insertRequest = async (tx: Tx, request: NewRequest): Promise<RequestRow> =>
  (await insert.one(tx, { replaceVmId: null, ...request }))!

const replacement = statement<{ id: string }, { vmId: string; since: string }, Tx>(
  'capacity_request_of_replacement',
  `SELECT id FROM capacity_requests
   WHERE replace_vm_id = :vmId AND (due_at IS NOT NULL OR created_at >= :since::timestamptz) LIMIT 1`,
)
/** Returns whether a request to replace the VM is waiting, or was made after `since`. */
export const hasReplacementRequest = async (tx: Tx, vmId: string, since: string): Promise<boolean> =>
  (await replacement.one(tx, { vmId, since })) !== undefined

export const updateRequest = statement<
  RequestRow,
  { projectId: string; id: string; until: Date | null; labels: Labels | null },
  Tx
>(
  'capacity_request_update',
  `UPDATE capacity_requests SET until = coalesce(:until, until), labels = coalesce(:labels, labels),
     due_at = CASE WHEN state = 'waiting' AND blocked_by = '' THEN slipway_now() ELSE due_at END, updated_at = slipway_now()
   WHERE id = :id AND project_id = :projectId AND due_at IS NOT NULL RETURNING *`,
).one

export const listDueRequests = statement<{ id: string }>(
  'capacity_request_due',
  'SELECT id FROM capacity_requests WHERE due_at <= slipway_now() ORDER BY due_at LIMIT 100',
).all

/**
 * Marks the request as held: GPUs of these hosts are held for it. Returns undefined if it is no longer
 * waiting. With `on_available: create`, the request is granted immediately, or when a group that did not boot
 * has been removed.
 */
export const setHeld = statement<RequestRow, { id: string; location: string; hostIds: string[] }, Tx>(
  'capacity_request_hold',
  `UPDATE capacity_requests SET state = 'held', location = :location, held_hosts = :hostIds, blocked_by = '',
     held_until = slipway_now() + hold_seconds * interval '1 second', granted_at = slipway_now(), updated_at = slipway_now(),
     due_at = slipway_now() + CASE WHEN on_available = 'create' AND operation_id IS NULL THEN '0 s' ELSE hold_seconds * interval '1 second' END
   WHERE id = :id AND state = 'waiting' RETURNING *`,
).one

/** Makes the request wait again at its old position, because the hold is lost. */
export const setWaiting = statement<RequestRow, { id: string }, Tx>(
  'capacity_request_requeue',
  `UPDATE capacity_requests SET state = 'waiting', location = '', held_hosts = '{}', held_until = NULL, granted_at = NULL,
     updated_at = slipway_now(), due_at = slipway_now()
   WHERE id = :id AND state = 'held' RETURNING *`,
).oneBy('id')

/** Makes a request wait again after its VM or group did not boot, at most `maxRequeues` times. */
export const setWaitingAfterFailedBoot = statement<
  RequestRow,
  { operationId: string; maxRequeues: number },
  Tx
>(
  'capacity_request_retry_boot',
  `UPDATE capacity_requests SET state = 'waiting', location = '', granted_at = NULL, resource_id = NULL,
     failed_boots = failed_boots + 1, updated_at = slipway_now(), due_at = slipway_now()
   WHERE operation_id = :operationId AND state = 'fulfilled' AND failed_boots < :maxRequeues AND until > slipway_now()
   RETURNING *`,
).one

/** Allows a request to be granted again after the VM or group that did not boot is removed. */
export const forgetOperation = statement<never, { operationId: string }, Tx>(
  'capacity_request_forget_operation',
  `UPDATE capacity_requests SET operation_id = NULL,
     due_at = CASE WHEN state = 'held' AND on_available = 'hold' THEN due_at ELSE slipway_now() END
   WHERE operation_id = :operationId AND state IN ('waiting', 'held')`,
).runBy('operationId')

/** Marks a request as failed after the last attempt to boot its VM. */
export const failAfterFailedBoot = statement<RequestRow, { operationId: string }, Tx>(
  'capacity_request_fail_boot',
  `UPDATE capacity_requests SET state = 'failed', updated_at = slipway_now(), resource_id = NULL,
     error = json_build_object('code', 'boot_failed', 'message', 'The VM did not boot. See the operation for the reason.')
   WHERE operation_id = :operationId AND state = 'fulfilled' RETURNING *`,
).oneBy('operationId')

/** Ends a request. Returns undefined if it is no longer in the given state. */
export const endRequest = statement<
  RequestRow,
  {
    id: string
    from: CapacityRequestState
    to: CapacityRequestState
    resourceId: string | null
    operationId: string | null
    error: string | null
  },
  Tx
>(
  'capacity_request_end',
  `UPDATE capacity_requests SET state = :to, held_hosts = '{}', held_until = NULL, due_at = NULL, updated_at = slipway_now(),
     blocked_by = '', resource_id = :resourceId, operation_id = :operationId, error = :error
   WHERE id = :id AND state = :from RETURNING *`,
).one

// A request that cannot be granted now is checked again at `retryAt`, or after `retryS` if no time is given.
export const blockRequest = statement<
  RequestRow,
  { id: string; blockedBy: string; retryAt: Date | null; retryS: number },
  Tx
>(
  'capacity_request_block',
  `UPDATE capacity_requests SET blocked_by = :blockedBy, updated_at = slipway_now(),
     due_at = least(until, coalesce(:retryAt, slipway_now() + :retryS * interval '1 second'))
   WHERE id = :id AND state = 'waiting' RETURNING *`,
).one

/**
 * Leaves the request in the queue. The service does not check it again before it expires, unless it was
 * blocked in the meantime: then its entries are closed, and the check of the block opens them again.
 */
export const leaveInQueue = statement<never, { id: string }, Tx>(
  'capacity_request_rest',
  `UPDATE capacity_requests r SET due_at = until, blocked_by = '' WHERE id = :id AND state = 'waiting'
     AND NOT EXISTS (SELECT FROM capacity_places p WHERE p.request_id = r.id AND NOT p.is_open)`,
).runBy('id')

/** Makes the service check the request immediately. */
export const makeRequestDue = statement<never, { id: string }, Tx>(
  'capacity_request_make_due',
  `UPDATE capacity_requests SET due_at = slipway_now() WHERE id = :id AND state = 'waiting'`,
).runBy('id')

/** Makes the service check the blocked requests of an organization immediately. */
export const recheckBlocked = statement<never, { organizationId: string }, Tx>(
  'capacity_request_recheck',
  `UPDATE capacity_requests SET due_at = slipway_now()
   WHERE organization_id = :organizationId AND due_at IS NOT NULL AND state = 'waiting' AND blocked_by <> ''`,
).runBy('organizationId')

/** Reads the conditions other than quota and budget that can block a request. */
export const findBlockConditions = statement<
  {
    is_paid: boolean
    is_suspended: boolean
    no_hold_until: Date | null
    is_over: boolean
    has_hold_expired: boolean
  },
  { id: string; location: string }
>(
  'capacity_request_standing',
  `SELECT o.payment_state = 'active' AS is_paid, o.suspended_at IS NOT NULL AS is_suspended,
          CASE WHEN t.no_hold_until > slipway_now() THEN t.no_hold_until END AS no_hold_until,
          r.until <= slipway_now() AS is_over,
          coalesce(r.held_until <= slipway_now(), false) AS has_hold_expired
   FROM capacity_requests r JOIN organizations o ON o.id = r.organization_id
   LEFT JOIN capacity_turns t ON t.organization_id = r.organization_id AND t.family = r.family AND t.location = :location
   WHERE r.id = :id`,
).one as (
  db: Queryable,
  params: { id: string; location: string },
) => Promise<
  | {
      is_paid: boolean
      is_suspended: boolean
      no_hold_until: Date | null
      is_over: boolean
      has_hold_expired: boolean
    }
  | undefined
>

const prune = statement<never, { limit: number }>(
  'capacity_request_prune',
  `DELETE FROM capacity_requests WHERE id = ANY (ARRAY(
     SELECT id FROM capacity_requests WHERE due_at IS NULL AND updated_at < slipway_now() - interval '90 days'
     ORDER BY updated_at LIMIT :limit))`,
)
export const pruneRequests = (db: Queryable, limit: number) => prune.run(db, { limit })
