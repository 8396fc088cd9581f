import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface BudgetRow {
  project_id: string
  project_name: string
  monthly_usd: string | null
  is_hard_stop: boolean
  /** The exact cost of this month so far, in USD per hour times milliseconds (`usdOfMs` converts it). */
  spent_usd_ms: string
}

export interface ReachedBudgetRow extends BudgetRow {
  threshold_percent: number
}

/**
 * For a project without a budget, the limit is null. Admissions run this statement, so it reads only three
 * rows per project, by key, however many resources the project has.
 */
export const findBudgets = statement<BudgetRow, { projectIds: string[] }>(
  'budget_find',
  `SELECT p.id AS project_id, p.name AS project_name, b.monthly_usd::text, coalesce(b.is_hard_stop, false) AS is_hard_stop,
          coalesce(spent_by(s, slipway_now()), 0)::text AS spent_usd_ms
   FROM projects p LEFT JOIN budgets b ON b.project_id = p.id LEFT JOIN project_spending s ON s.project_id = p.id
   WHERE p.id = ANY (:projectIds::uuid[])`,
).allBy('projectIds')

export const putBudget = statement<
  never,
  { projectId: string; monthlyUsd: string | null; isHardStop: boolean },
  Tx
>(
  'budget_put',
  `INSERT INTO budgets (project_id, monthly_usd, is_hard_stop) VALUES (:projectId, :monthlyUsd, :isHardStop)
   ON CONFLICT (project_id) DO UPDATE SET monthly_usd = excluded.monthly_usd, is_hard_stop = excluded.is_hard_stop`,
).runBy('projectId', 'monthlyUsd', 'isHardStop')

const listReached = statement<ReachedBudgetRow, { thresholds: number[]; after: string; upTo: string }>(
  'budget_list_reached',
  `SELECT b.project_id, p.name AS project_name, b.monthly_usd::text, b.is_hard_stop, m.spent_usd_ms::text,
          t.percent AS threshold_percent
   FROM budgets b JOIN projects p ON p.id = b.project_id
   CROSS JOIN LATERAL (SELECT coalesce((SELECT spent_by(s, slipway_now()) FROM project_spending s
                                        WHERE s.project_id = b.project_id), 0) AS spent_usd_ms) m
   CROSS JOIN unnest(:thresholds::integer[]) AS t (percent)
   WHERE b.project_id > :after AND b.project_id <= :upTo AND b.monthly_usd IS NOT NULL AND p.deleted_at IS NULL
     AND m.spent_usd_ms * 100 >= b.monthly_usd * 3600000 * t.percent
     AND NOT EXISTS (SELECT FROM budget_alerts a
                     WHERE a.project_id = b.project_id AND a.threshold_percent = t.percent
                       AND a.month = date_trunc('month', slipway_now() AT TIME ZONE 'UTC')::date)
   ORDER BY b.project_id, t.percent`,
)

const lastOfChunk = statement<{ project_id: string }, { after: string; limit: number }>(
  'budget_piece',
  `SELECT project_id FROM (SELECT project_id FROM budgets WHERE project_id > :after ORDER BY project_id LIMIT :limit) chunk
   ORDER BY project_id DESC LIMIT 1`,
)

// The process that inserts the row emits the event.
const raise = statement<{ month: string }, { projectId: string; thresholdPercent: number }>(
  'budget_alert_raise',
  `INSERT INTO budget_alerts (project_id, month, threshold_percent)
   VALUES (:projectId, date_trunc('month', slipway_now() AT TIME ZONE 'UTC')::date, :thresholdPercent)
   ON CONFLICT DO NOTHING RETURNING to_char(month, 'YYYY-MM-DD') AS month`,
)

/** Returns the last of the next `limit` projects with a budget; undefined if there are none. */
export const findBudgetChunkEnd = async (db: Queryable, after: string, limit: number) =>
  (await lastOfChunk.one(db, { after, limit }))?.project_id

/**
 * Lists the thresholds that budgets have reached this month and that have no alert yet, one row each, for
 * projects after `after`, up to and including `upTo`.
 */
export const listReachedBudgets = (
  db: Queryable,
  thresholds: readonly number[],
  chunk: { after: string; upTo: string },
) => listReached.all(db, { thresholds: [...thresholds], ...chunk })

/** Returns false if the alert was already raised this month. */
export const raiseBudgetAlert = async (tx: Tx, projectId: string, thresholdPercent: number) =>
  (await raise.one(tx, { projectId, thresholdPercent })) !== undefined
