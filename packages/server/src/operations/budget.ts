import { Failure } from '../domain/failure.ts'
import { compareExact, displayUsd, parseDecimal, usdOfMs } from '../domain/money.ts'
import { addMonths, monthOf } from '../domain/months.ts'
import type { Tx } from '../postgres/database.ts'
import { gathered } from '../postgres/gathered.ts'
import { type BudgetRow, findBudgets } from '../store/billing/budgets.ts'
import { usageState } from '../store/billing/usage-days.ts'

/**
 * Returns a 403 if the project's budget has a hard stop and is spent, for requests that would raise the project's cost. The
 * caller throws it together with the quota check, after every other check.
 */
export async function budgetRefusal(tx: Tx, projectId: string): Promise<Failure | undefined> {
  const budget = await readBudget(tx, projectId)
  if (!budget || !isSpent(budget)) return undefined
  const { project_name, monthly_usd, spent_usd_ms } = budget
  const { today } = await usageState(tx)
  return new Failure(
    'quota_exceeded',
    `quota exceeded: the monthly budget of project ${project_name} (${monthly_usd} USD, hard stop) is spent: ` +
      `${displayUsd(usdOfMs(spent_usd_ms), 2)} USD this month. Raise it with PUT /v0.1/projects/${projectId}/budget, or wait until ${addMonths(monthOf(today), 1)}.`,
  )
}

const readBudget = gathered(async (tx: Tx, projectIds: string[]): Promise<(BudgetRow | undefined)[]> => {
  const budgets = await findBudgets(tx, [...new Set(projectIds)])
  return projectIds.map((id) => budgets.find(({ project_id }) => project_id === id))
})

const isSpent = ({ is_hard_stop, monthly_usd, spent_usd_ms }: BudgetRow): boolean =>
  is_hard_stop && monthly_usd !== null && compareExact(usdOfMs(spent_usd_ms), parseDecimal(monthly_usd)) >= 0
