import type { DevClock } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface ClockRow {
  mode: DevClock['mode']
  now: Date
  rate: number
}

const find = statement<ClockRow>(
  'dev_clock',
  `SELECT CASE WHEN paused_at IS NOT NULL THEN 'frozen' WHEN rate <> 1 THEN 'scaled' ELSE 'real' END AS mode,
          (SELECT now FROM moment) AS now, CASE WHEN paused_at IS NOT NULL THEN 0 ELSE rate END AS rate
   FROM clock`,
)

const set = statement<never, { mode: string; now: Date; rate: number }>(
  'dev_clock_set',
  `UPDATE clock SET paused_at = CASE WHEN :mode = 'frozen' THEN :now::timestamptz END,
     moved = :now::timestamptz - sign_in_now(), rate = :rate::float8, rate_since = sign_in_now()`,
)

const step = statement<never, { ms: number }>(
  'dev_clock_step',
  `UPDATE clock SET moved = moved + :ms::float8 * interval '1 millisecond',
     paused_at = paused_at + :ms::float8 * interval '1 millisecond'`,
)

// Hosts and engines that have reported recently must not look silent because the clock was moved.
const moveReports = statement<never, { ms: number }>(
  'dev_clock_move_reports',
  `UPDATE host_reports r SET reported_at = r.reported_at + :ms::float8 * interval '1 millisecond'
   FROM hosts h WHERE h.id = r.host_id AND h.state <> 'down' AND NOT EXISTS (
     SELECT FROM simulated_hosts s WHERE s.location = h.location AND s.name = h.name AND s.is_lost)`,
)
const moveEngines = statement<never, { ms: number }>(
  'dev_clock_move_engines',
  `UPDATE locations SET engine_answered_at = engine_answered_at + :ms::float8 * interval '1 millisecond'`,
)

// Makes operations due if their VM is ready. Otherwise, they would continue only after their pause.
const wakeReady = statement<never>(
  'dev_clock_wake_ready',
  `UPDATE operation_queue q SET run_at = slipway_now() FROM operations o JOIN simulated_vms s ON s.id = o.resource_id
   WHERE o.id = q.operation_id AND q.lease_token IS NULL AND q.run_at > slipway_now()
     AND s.ready_at <= slipway_now() AND NOT s.is_removed`,
)

/** The next times after `now` at which something is due, by kind of work. */
export interface NextDue {
  work: Date | null
  /** When a roll-up is due, or a threshold of a budget is reached. */
  billing: Date | null
  /** When a failed host will have been silent long enough to count as lost. */
  silence: Date | null
}

interface NextDueParams {
  now: Date
  warnAheadS: number
  rollupAtUtc: string
  thresholds: readonly number[]
  silenceMs: number
  unreachableS: number
}

const nextDue = statement<NextDue, NextDueParams>(
  'dev_next_due',
  `SELECT (SELECT min(at) FROM (
     SELECT min(run_at) FROM operation_queue WHERE lease_token IS NULL AND run_at > :now
     UNION ALL SELECT min(expires_at) FROM vms WHERE expires_at > :now AND deleted_at IS NULL
     UNION ALL SELECT min(expires_at) - :warnAheadS::float8 * interval '1 second' FROM vms
       WHERE expires_at > :now::timestamptz + :warnAheadS::float8 * interval '1 second' AND deleted_at IS NULL
     UNION ALL SELECT date_trunc('minute', :now::timestamptz) + interval '1 minute' FROM vms
       WHERE idle_policy IS NOT NULL AND state = 'STATE_RUNNING' AND deleted_at IS NULL
     UNION ALL SELECT min(billing_paused_at + pause) FROM vms CROSS JOIN unnest(ARRAY[interval '1 hour', '24 hours']) pause
       WHERE billing_paused_at + pause > :now AND deleted_at IS NULL
     UNION ALL SELECT min(maintenance_at - ahead) FROM hosts CROSS JOIN unnest(ARRAY[interval '7 days', '24 hours', '1 hour']) ahead
       WHERE maintenance_at - ahead > :now
     UNION ALL SELECT min(due_at) FROM webhooks WHERE due_at > :now
     UNION ALL SELECT min(due_at) FROM capacity_requests WHERE due_at > :now
     UNION ALL SELECT min(due_at) FROM capacity_lanes WHERE due_at > :now
     UNION ALL SELECT min(due_at) FROM reservations WHERE due_at > :now
     UNION ALL SELECT min(next_attempt_at) FROM mails WHERE next_attempt_at > :now
     UNION ALL SELECT min(ready_at) FROM simulated_vms WHERE ready_at > :now AND NOT is_removed
     UNION ALL SELECT min(clean_at) FROM simulated_gpu_resets WHERE clean_at > :now
     UNION ALL SELECT min(state_since) + :unreachableS::float8 * interval '1 second' FROM vms
       WHERE group_id IS NOT NULL AND state = 'STATE_UNREACHABLE' AND deleted_at IS NULL
         AND state_since > :now::timestamptz - :unreachableS::float8 * interval '1 second') AS due (at)) AS work,
   (SELECT min(at) FROM (
     SELECT min(day) FROM (
       SELECT date_trunc('day', :now::timestamptz, 'UTC') + n * interval '1 day'
              + greatest(:rollupAtUtc::interval, '1 minute') AS day FROM generate_series(0, 1) n) roll_up WHERE day > :now
     UNION ALL SELECT min(reached) FROM (
       SELECT s.at + (b.monthly_usd * t.percent / 100 * 3600000 - s.spent_usd_ms) / s.usd_per_hour
              * interval '1 millisecond' + interval '1 second' AS reached
       FROM budgets b JOIN project_spending s USING (project_id) CROSS JOIN unnest(:thresholds::int[]) AS t (percent)
       WHERE s.usd_per_hour > 0 AND b.monthly_usd * t.percent / 100 * 3600000 > s.spent_usd_ms
         AND (b.monthly_usd * 3600000 - s.spent_usd_ms) / s.usd_per_hour < 40 * 86400000::bigint) budget
       WHERE reached > :now) AS due (at)) AS billing,
   (SELECT min(r.reported_at) + (:silenceMs::float8 + 1) * interval '1 millisecond'
    FROM host_reports r JOIN hosts h ON h.id = r.host_id JOIN simulated_hosts s ON s.location = h.location AND s.name = h.name
    WHERE s.is_lost AND h.state <> 'down' AND r.reported_at >= :now::timestamptz - :silenceMs::float8 * interval '1 millisecond')
     AS silence`,
)

const inProgress = statement<{ id: string; kind: string; resource_id: string }>(
  'dev_operations_due',
  `SELECT o.id, o.kind, o.resource_id FROM operation_queue q JOIN operations o ON o.id = q.operation_id
   WHERE q.lease_token IS NOT NULL OR q.run_at <= slipway_now() ORDER BY o.id LIMIT 20`,
)

// The worker that held these leases was an earlier process. With a frozen clock its leases would never expire.
const expireLeases = statement<never>(
  'dev_leases_expire',
  'UPDATE operation_queue SET run_at = slipway_now() WHERE lease_token IS NOT NULL AND run_at > slipway_now()',
)
const expireTasks = statement<never>('dev_tasks_expire', 'DELETE FROM leases')

export const findClock = async (db: Queryable): Promise<ClockRow> => (await find.one(db))!
export const setClock = set.run
export const findNextDue = async (db: Queryable, params: NextDueParams): Promise<NextDue> =>
  (await nextDue.one(db, params))!
export const listDueOperations = inProgress.all

/** Moves the clock, and the reports of hosts with it. Operations continue if their VM is ready by then. */
export async function stepClock(tx: Tx, ms: number): Promise<void> {
  await step.run(tx, { ms })
  await moveReports.run(tx, { ms })
  await moveEngines.run(tx, { ms })
  await wakeReady.run(tx)
}

export async function expireAllLeases(tx: Tx): Promise<void> {
  await expireLeases.run(tx)
  await expireTasks.run(tx)
}
