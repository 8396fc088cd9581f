import { Failure } from '../domain/failure.ts'
import { compareExact, displayUsd, parseDecimal, usdOfMs } from '../domain/money.ts'
import { addMonths, monthOf } from '../domain/months.ts'
import type { Tx } from '../postgres/database.ts'
import { gathered } from '../postgres/gathered.ts'
import { type BudgetRow, findBudgets } from '../store/billing/budgets.ts'
import { usageState } from '../store/billing/usage-days.ts'

/**
 * Returns the 403 that names the project's budget if it is spent and has a hard stop, for requests that would make the
 * project cost more. The caller throws it where quotas are checked, after every other objection.
 */
export async function budgetRefusal(tx: Tx, projectId: string): Promise<Failure | undefined> {
  const budget = await readBudget(tx, projectId)
  if (!budget || !isSpent(budget)) return undefined
  const { today } = await usageState(tx)
  return refusalOf(budget, today)
}

const readBudget = gathered(async (tx: Tx, projectIds: string[]): Promise<(BudgetRow | undefined)[]> => {
  const budgets = await findBudgets(tx, [...new Set(projectIds)])
  return projectIds.map((id) => budgets.find(({ project_id }) => project_id === id))
})

const isSpent = ({ is_hard_stop, monthly_usd, spent_usd_ms }: BudgetRow): boolean =>
  is_hard_stop && monthly_usd !== null && compareExact(usdOfMs(spent_usd_ms), parseDecimal(monthly_usd)) >= 0

const refusalOf = ({ project_id, project_name, monthly_usd, spent_usd_ms }: BudgetRow, today: string) =>
  new Failure(
    'quota_exceeded',
    `quota exceeded: the monthly budget of project ${project_name} (${monthly_usd} USD, hard stop) is spent: ` +
      `${displayUsd(usdOfMs(spent_usd_ms), 2)} USD this month. Raise it with PUT /v0.1/projects/${project_id}/budget, or wait until ${addMonths(monthOf(today), 1)}.`,
  )
