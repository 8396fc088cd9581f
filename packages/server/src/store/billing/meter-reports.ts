import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface MeterReportRow {
  organization_id: string
  organization_name: string
  payment_customer_id: string
  day: string
  usd_cents: string
  attempts: number
  /** Milliseconds since the first attempt to send the report; null if there was none. */
  tried_ago_ms: number | null
  day_age_ms: number
}

export const insertMeterReport = statement<
  never,
  { organizationId: string; day: string; usdCents: string },
  Tx
>(
  'meter_report_insert',
  `INSERT INTO meter_reports (organization_id, day, usd_cents) VALUES (:organizationId, :day, :usdCents)
   ON CONFLICT DO NOTHING`,
).runBy('organizationId', 'day', 'usdCents')

/**
 * Claims reports for two minutes, so that two processes never send the same report at the same time. If a
 * process dies, another process takes over.
 */
export const takeMeterReports = statement<MeterReportRow, { limit: number }>(
  'meter_report_take',
  `UPDATE meter_reports r SET next_attempt_at = slipway_now() + interval '2 minutes'
   FROM organizations o
   WHERE o.id = r.organization_id AND (r.organization_id, r.day) IN (
     SELECT organization_id, day FROM meter_reports WHERE state = 'pending' AND next_attempt_at <= slipway_now()
     ORDER BY next_attempt_at LIMIT :limit FOR UPDATE SKIP LOCKED)
   RETURNING r.organization_id, o.name AS organization_name, o.payment_customer_id, to_char(r.day, 'YYYY-MM-DD') AS day,
             r.usd_cents::text, r.attempts,
             (extract(epoch FROM slipway_now() - r.tried_at) * 1000)::float8 AS tried_ago_ms,
             (extract(epoch FROM slipway_now() - r.day::timestamp AT TIME ZONE 'UTC') * 1000)::float8 AS day_age_ms`,
).allBy('limit')

const markTried = statement<never, { organizationId: string; day: string }>(
  'meter_report_tried',
  `UPDATE meter_reports SET tried_at = slipway_now() WHERE organization_id = :organizationId AND day = :day`,
)

const close = statement<never, { organizationId: string; day: string; state: string }>(
  'meter_report_settle',
  `UPDATE meter_reports SET state = :state, attempts = attempts + 1
   WHERE organization_id = :organizationId AND day = :day AND state = 'pending'`,
)

// The pause is a minute at first, doubles each time, and is at most an hour.
const postpone = statement<never, { organizationId: string; day: string }>(
  'meter_report_postpone',
  `UPDATE meter_reports SET attempts = attempts + 1,
          next_attempt_at = slipway_now() + least(interval '1 hour', interval '1 minute' * 2 ^ least(attempts, 10))
   WHERE organization_id = :organizationId AND day = :day AND state = 'pending'`,
)

/** Call this before sending the report: from then on, the provider may have received it. */
export const markMeterReportTried = (db: Queryable, { organization_id, day }: MeterReportRow) =>
  markTried.run(db, { organizationId: organization_id, day })

/** Returns false if the report was already closed. */
export const closeMeterReport = async (
  db: Queryable,
  { organization_id, day }: MeterReportRow,
  state: 'sent' | 'disputed',
) => (await close.run(db, { organizationId: organization_id, day, state })) > 0

export const postponeMeterReport = (db: Queryable, { organization_id, day }: MeterReportRow) =>
  postpone.run(db, { organizationId: organization_id, day })
