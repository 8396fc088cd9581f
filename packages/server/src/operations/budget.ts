import { Failure } from '../domain/failure.ts'
import { compareExact, displayUsd, parseDecimal, usdOfMs } from '../domain/money.ts'
import { addMonths, monthOf } from '../domain/months.ts'
import { type BudgetRow, findBudgets } from '../store/billing/budgets.ts'
import { usageState } from '../store/billing/usage-days.ts'
import type { Tx } from '../store/database.ts'

/**
 * Returns, by project, the 403 that names the budget, for what would make the project cost more, if the budget says so
 * and is spent. It is read before a host is locked and used where quotas are, after every other objection.
 */
export async function budgetRefusals(tx: Tx, projectIds: string[]): Promise<Map<string, Failure>> {
  const spent = (await findBudgets(tx, [...new Set(projectIds)])).filter(isSpent)
  if (spent.length === 0) return new Map()
  const { today } = await usageState(tx)
  return new Map(spent.map((budget) => [budget.project_id, refusalOf(budget, today)]))
}

export async function budgetRefusal(tx: Tx, projectId: string): Promise<Failure | undefined> {
  return (await budgetRefusals(tx, [projectId])).get(projectId)
}

const isSpent = ({ is_hard_stop, monthly_usd, spent_usd_ms }: BudgetRow): boolean =>
  is_hard_stop && monthly_usd !== null && compareExact(usdOfMs(spent_usd_ms), parseDecimal(monthly_usd)) >= 0

const refusalOf = ({ project_id, project_name, monthly_usd, spent_usd_ms }: BudgetRow, today: string) =>
  new Failure(
    'quota_exceeded',
    `quota exceeded: the monthly budget of project ${project_name} (${monthly_usd} USD, hard stop) is spent: ` +
      `${displayUsd(usdOfMs(spent_usd_ms), 2)} USD this month. Raise it with PUT /v0.1/projects/${project_id}/budget, or wait until ${addMonths(monthOf(today), 1)}.`,
  )
