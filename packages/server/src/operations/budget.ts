import { Failure } from '../domain/failure.ts'
import { compareExact, displayUsd, parseDecimal, usdOfMs } from '../domain/money.ts'
import { addMonths, monthOf } from '../domain/months.ts'
import { findBudget } from '../store/billing/budgets.ts'
import { usageState } from '../store/billing/usage-days.ts'
import type { Tx } from '../store/database.ts'

/**
 * The 403 that names the budget, for what would make the project cost more, if the budget says so and is spent. It is
 * read before a host is locked and thrown where quotas are, after every other objection.
 */
export async function budgetRefusal(tx: Tx, projectId: string): Promise<Failure | null> {
  const budget = await findBudget(tx, projectId)
  if (!budget?.is_hard_stop || budget.monthly_usd === null) return null
  const spent = usdOfMs(budget.spent_usd_ms)
  if (compareExact(spent, parseDecimal(budget.monthly_usd)) < 0) return null
  const { today } = await usageState(tx)
  return new Failure(
    'quota_exceeded',
    `quota exceeded: the monthly budget of project ${budget.project_name} (${budget.monthly_usd} USD, hard stop) is spent: ` +
      `${displayUsd(spent, 2)} USD this month. Raise it with PUT /v0.1/projects/${projectId}/budget, or wait until ${addMonths(monthOf(today), 1)}.`,
  )
}
