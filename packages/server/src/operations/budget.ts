import { sumUsd } from '../domain/charges.ts'
import { Failure } from '../domain/failure.ts'
import { compareExact, displayUsd, type Exact, parseDecimal } from '../domain/money.ts'
import { addMonths, monthOf } from '../domain/months.ts'
import { findBudget } from '../store/billing/budgets.ts'
import { listMonth, usageState } from '../store/billing/usage-days.ts'
import type { Queryable, Tx } from '../store/database.ts'
import { findProject } from '../store/identity/projects.ts'

/** What the project has cost this month so far. */
export const spentThisMonth = async (db: Queryable, projectId: string): Promise<Exact> =>
  sumUsd(await listMonth(db, [projectId]))

/** 403 that names the budget, for what would make the project cost more, if the budget says so and is spent. */
export async function requireBudget(tx: Tx, projectId: string): Promise<void> {
  const budget = await findBudget(tx, projectId)
  if (!budget?.is_hard_stop || budget.monthly_usd === null) return
  const spent = await spentThisMonth(tx, projectId)
  if (compareExact(spent, parseDecimal(budget.monthly_usd)) < 0) return
  const project = await findProject(tx, projectId)
  const { today } = await usageState(tx)
  throw new Failure(
    'quota_exceeded',
    `quota exceeded: the monthly budget of project ${project?.name ?? projectId} (${budget.monthly_usd} USD, hard stop) is spent: ` +
      `${displayUsd(spent, 2)} USD this month. Raise it with PUT /v0.1/projects/${projectId}/budget, or wait until ${addMonths(monthOf(today), 1)}.`,
  )
}
