import type { Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'

export interface BudgetRow {
  monthly_usd: string | null
  is_hard_stop: boolean
}

const find = statement<BudgetRow, { projectId: string }>(
  'budget_find',
  'SELECT monthly_usd::text, is_hard_stop FROM budgets WHERE project_id = :projectId',
)

const put = statement<never, { projectId: string; monthlyUsd: string | null; isHardStop: boolean }>(
  'budget_put',
  `INSERT INTO budgets (project_id, monthly_usd, is_hard_stop) VALUES (:projectId, :monthlyUsd, :isHardStop)
   ON CONFLICT (project_id) DO UPDATE SET monthly_usd = excluded.monthly_usd, is_hard_stop = excluded.is_hard_stop`,
)

const listLimited = statement<BudgetRow & { project_id: string; project_name: string }>(
  'budget_list_limited',
  `SELECT b.project_id, p.name AS project_name, b.monthly_usd::text, b.is_hard_stop
   FROM budgets b JOIN projects p ON p.id = b.project_id
   WHERE b.monthly_usd IS NOT NULL AND p.deleted_at IS NULL ORDER BY b.project_id`,
)

// Whoever comes first tells of it.
const raise = statement<{ month: string }, { projectId: string; thresholdPercent: number }>(
  'budget_alert_raise',
  `INSERT INTO budget_alerts (project_id, month, threshold_percent)
   VALUES (:projectId, date_trunc('month', slipway_now() AT TIME ZONE 'UTC')::date, :thresholdPercent)
   ON CONFLICT DO NOTHING RETURNING to_char(month, 'YYYY-MM-DD') AS month`,
)

export const findBudget = (db: Queryable, projectId: string) => find.one(db, { projectId })

export const putBudget = (tx: Tx, projectId: string, monthlyUsd: string | null, isHardStop: boolean) =>
  put.run(tx, { projectId, monthlyUsd, isHardStop })

export const listLimitedBudgets = (db: Queryable) => listLimited.all(db)

/** Returns whether this is the month's first time. */
export const raiseBudgetAlert = async (tx: Tx, projectId: string, thresholdPercent: number) =>
  (await raise.one(tx, { projectId, thresholdPercent })) !== undefined
