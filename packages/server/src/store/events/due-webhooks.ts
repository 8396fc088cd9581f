import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import type { EventRow } from './events.ts'

export interface DeliveryRow {
  id: string
  seq: number
  webhook_id: string
  event_id: string
  event_type: string
  resource_id: string
  state: 'pending' | 'delivered' | 'failed'
  attempts: number
  response_status: number
  response_body: string
  error: string
  next_attempt_at: Date | null
  created_at: Date
  completed_at: Date | null
}

/** A webhook that waits for a slot. */
export interface DueWebhook {
  webhookId: string
  projectId: string
  organizationId: string
  isSlow: boolean
}

/** The webhooks, projects and organizations that use all their slots. */
export interface AtLimit {
  webhookIds: string[]
  projectIds: string[]
  organizationIds: string[]
}

export interface ClaimedDelivery {
  delivery: DeliveryRow
  url: string
  event: EventRow
  /**
   * The real time of the database. Receivers compare it with their own clock, and the clock of this process may
   * be wrong.
   */
  claimedAt: Date
}

/** The result of an attempt. */
export interface AttemptOutcome {
  state: DeliveryRow['state']
  status: number
  error: string
  responseBody: string
  /** The time until the next attempt, if there is one. */
  pauseS: number | null
  isSlow: boolean
  /** How long to pause all attempts to this receiver. */
  restS: number
}

/**
 * Returns the webhooks that still exist. Locks them in the order of their ids, so that two transactions never
 * deadlock.
 */
export const lockWebhooks = statement<{ id: string; failures: number }, { ids: string[] }, Tx>(
  'webhooks_lock',
  `SELECT id, failures FROM webhooks WHERE id = ANY (:ids::uuid[]) ORDER BY id FOR NO KEY UPDATE`,
).allBy('ids')

// A webhook is due when the first delivery of one of its queues is due and the pause of its receiver has
// ended. A webhook that is already waiting keeps its position, even if deliveries are added; a webhook that
// had its turn moves to the end. The caller has locked the rows.
const schedule = statement<never, { ids: string[]; hadTurn: boolean }>(
  'webhooks_schedule',
  `UPDATE webhooks w SET due_at = CASE
       WHEN head.due_at IS NULL THEN NULL
       WHEN NOT :hadTurn AND w.due_at <= slipway_now() AND coalesce(w.rests_until <= slipway_now(), true) THEN w.due_at
       ELSE greatest(head.due_at, w.rests_until, slipway_now()) END
   FROM unnest(:ids::uuid[]) AS given (id) CROSS JOIN LATERAL (
     SELECT (SELECT d.next_attempt_at FROM webhook_deliveries d
             WHERE d.webhook_id = given.id AND d.state = 'pending' AND d.next_attempt_at IS NOT NULL
             ORDER BY d.next_attempt_at LIMIT 1) AS due_at) head
   WHERE w.id = given.id`,
)

// Slow and quick webhooks have separate queues. This reads the start of one of them. The deliveries of a suspended
// organization wait until it is active again.
const nextInQueue = statement<
  { id: string; project_id: string; organization_id: string },
  AtLimit & { isSlow: boolean; limit: number }
>(
  'webhooks_in_line',
  `SELECT w.id, w.project_id, p.organization_id
   FROM webhooks w JOIN projects p ON p.id = w.project_id JOIN organizations o ON o.id = p.organization_id
   WHERE w.is_slow = :isSlow AND w.due_at <= slipway_now() AND o.suspended_at IS NULL
     AND w.id <> ALL (:webhookIds::uuid[]) AND w.project_id <> ALL (:projectIds::uuid[])
     AND p.organization_id <> ALL (:organizationIds::uuid[])
   ORDER BY w.due_at LIMIT :limit FOR NO KEY UPDATE OF w SKIP LOCKED`,
)

// Only the first delivery of each queue has a time, which keeps the order within each resource. The caller
// has locked the webhooks' rows, so that no other worker claims their deliveries. The attempt is counted at
// the claim: a worker that lost its lease has an old count and writes nothing.
const claim = statement<
  DeliveryRow & {
    url: string
    event: Omit<EventRow, 'created_at'>
    event_created_at: Date
    claimed_at: Date
  },
  { webhookIds: string[]; counts: number[]; leaseMs: number }
>(
  'webhook_deliveries_claim',
  `WITH mine AS (
     SELECT head.id FROM unnest(:webhookIds::uuid[], :counts::integer[]) AS turn (webhook_id, count)
     CROSS JOIN LATERAL (
       SELECT d.id FROM webhook_deliveries d
       WHERE d.webhook_id = turn.webhook_id AND d.state = 'pending' AND d.next_attempt_at <= slipway_now()
       ORDER BY d.next_attempt_at, d.seq LIMIT turn.count) head)
   UPDATE webhook_deliveries d
   SET attempts = attempts + 1, leased_until = slipway_now() + :leaseMs * interval '1 millisecond',
       next_attempt_at = slipway_now() + :leaseMs * interval '1 millisecond'
   FROM mine, webhooks w, events e
   WHERE d.id = mine.id AND w.id = d.webhook_id AND e.id = d.event_id
   RETURNING d.*, w.url, to_jsonb(e) AS event, e.created_at AS event_created_at,
             statement_timestamp() AS claimed_at`,
)

// When this delivery ends, the next delivery of the queue becomes the first. Nothing changes if another
// worker has taken over.
const end = statement<
  { state: DeliveryRow['state'] },
  { id: string; attempt: number } & Pick<
    AttemptOutcome,
    'state' | 'status' | 'error' | 'responseBody' | 'pauseS'
  >
>(
  'webhook_delivery_end',
  `WITH ended AS (
     UPDATE webhook_deliveries d
     SET state = :state, response_status = :status, response_body = :responseBody, error = :error,
         leased_until = NULL,
         completed_at = CASE WHEN :state <> 'pending' THEN slipway_now() END,
         next_attempt_at = CASE WHEN :state = 'pending' AND (d.is_direct OR w.state = 'active')
                                THEN slipway_now() + :pauseS * interval '1 second' END
     FROM webhooks w
     WHERE d.id = :id AND d.attempts = :attempt AND d.state = 'pending' AND w.id = d.webhook_id
     RETURNING d.webhook_id, d.resource_id, d.seq, d.state,
               d.state <> 'pending' AND NOT d.is_direct AND w.state = 'active' AS leaves_queue),
   head AS (
     UPDATE webhook_deliveries d SET next_attempt_at = slipway_now()
     FROM (SELECT (SELECT n.id FROM webhook_deliveries n
                   WHERE n.webhook_id = e.webhook_id AND n.resource_id = e.resource_id AND n.state = 'pending'
                     AND NOT n.is_direct AND n.seq > e.seq ORDER BY n.seq LIMIT 1) AS id
           FROM ended e WHERE e.leaves_queue) next
     WHERE d.id = next.id)
   SELECT state FROM ended`,
)

const recordSuccess = statement<never, { id: string; isSlow: boolean }>(
  'webhook_note_success',
  `UPDATE webhooks SET fails_since = NULL, failures = 0, rests_until = NULL, is_slow = :isSlow
   WHERE id = :id AND (fails_since IS NOT NULL OR failures > 0 OR rests_until IS NOT NULL OR is_slow <> :isSlow)`,
)

// Attempts that ran at the same time count as one failure of their receiver.
const recordFailure = statement<never, { id: string; restS: number }>(
  'webhook_note_failure',
  `UPDATE webhooks SET fails_since = coalesce(fails_since, slipway_now()), is_slow = true,
          failures = CASE WHEN rests_until > slipway_now() THEN failures ELSE failures + 1 END,
          rests_until = CASE WHEN rests_until > slipway_now() THEN rests_until
                             ELSE slipway_now() + :restS * interval '1 second' END
   WHERE id = :id`,
)

/** Updates the times at which the webhooks are due. The caller has locked their rows. */
export const scheduleWebhooks = (tx: Tx, ids: string[]) => schedule.run(tx, { ids, hadTurn: false })

/** Returns the webhooks that have waited longest, and locks their rows. */
export async function claimDueWebhooks(
  tx: Tx,
  isSlow: boolean,
  full: AtLimit,
  limit: number,
): Promise<DueWebhook[]> {
  const rows = await nextInQueue.all(tx, { ...full, isSlow, limit })
  return rows.map(({ id, project_id, organization_id }) => ({
    webhookId: id,
    projectId: project_id,
    organizationId: organization_id,
    isSlow,
  }))
}

/**
 * Claims `count` deliveries of each webhook, and moves the webhooks to the end of the queue. The caller has
 * locked their rows.
 */
export async function claimDeliveries(
  tx: Tx,
  turns: { webhookId: string; count: number }[],
  leaseMs: number,
): Promise<ClaimedDelivery[]> {
  const webhookIds = turns.map(({ webhookId }) => webhookId)
  const rows = await claim.all(tx, { webhookIds, counts: turns.map(({ count }) => count), leaseMs })
  await schedule.run(tx, { ids: webhookIds, hadTurn: true })
  return rows.map(({ url, event, event_created_at, claimed_at, ...delivery }) => ({
    delivery,
    url,
    event: { ...event, created_at: event_created_at },
    claimedAt: claimed_at,
  }))
}

/** Returns undefined if another worker has taken over. The caller has locked the webhook's row. */
export async function endAttempt(
  tx: Tx,
  { id, webhook_id, attempts }: DeliveryRow,
  outcome: AttemptOutcome,
): Promise<DeliveryRow['state'] | undefined> {
  const { state, status, error, responseBody, pauseS, isSlow, restS } = outcome
  const ended = await end.one(tx, { id, attempt: attempts, state, status, error, responseBody, pauseS })
  if (!ended) return undefined
  if (state === 'delivered') await recordSuccess.run(tx, { id: webhook_id, isSlow })
  else await recordFailure.run(tx, { id: webhook_id, restS })
  await scheduleWebhooks(tx, [webhook_id])
  return ended.state
}
