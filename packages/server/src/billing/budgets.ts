import type { Budget } from '@slipway/contract'
import { usdNumber } from '../domain/charges.ts'
import { compareExact, parseDecimal, timesExact } from '../domain/money.ts'
import type { ProjectRequester } from '../operations/admission.ts'
import { spentThisMonth } from '../operations/budget.ts'
import type { Services } from '../services.ts'
import { findBudget, listLimitedBudgets, putBudget, raiseBudgetAlert } from '../store/billing/budgets.ts'
import type { Queryable, Tx } from '../store/database.ts'
import { emit } from '../store/events/events.ts'
import { budgetView } from '../views/billing.ts'

const thresholds = [50, 80, 100] as const

/** Tells of every threshold that a budget has reached, once a month each, in whatever process looks first. */
export async function checkBudgets({ database }: Services): Promise<void> {
  for (const budget of await listLimitedBudgets(database)) {
    const spent = await spentThisMonth(database, budget.project_id)
    const limit = parseDecimal(budget.monthly_usd!)
    const reached = thresholds.filter(
      (percent) => compareExact(timesExact(spent, 100n), timesExact(limit, BigInt(percent))) >= 0,
    )
    if (reached.length === 0) continue
    await database.transaction(async (tx) => {
      for (const percent of reached) {
        if (!(await raiseBudgetAlert(tx, budget.project_id, percent))) continue
        await emit(tx, {
          type: 'budget.threshold_reached',
          resourceType: 'project',
          resourceId: budget.project_id,
          projectId: budget.project_id,
          data: {
            name: budget.project_name,
            threshold_percent: percent,
            monthly_usd: Number(budget.monthly_usd),
            spent_usd: usdNumber(spent),
            hard_stop: budget.is_hard_stop,
          },
        })
      }
    })
  }
}

export const readBudget = async (db: Queryable, projectId: string): Promise<Budget> =>
  budgetView(await findBudget(db, projectId), await spentThisMonth(db, projectId))

/** `monthlyUsd` null takes the limit away. */
export async function changeBudget(
  tx: Tx,
  by: ProjectRequester,
  monthlyUsd: number | null,
  isHardStop: boolean,
): Promise<void> {
  await putBudget(tx, by.projectId, monthlyUsd === null ? null : decimalOf(monthlyUsd), isHardStop)
  await emit(tx, {
    ...by,
    type: 'budget.set',
    resourceType: 'project',
    resourceId: by.projectId,
    data: { monthly_usd: monthlyUsd, hard_stop: isHardStop },
  })
}

/** Plain digits, also where a number would print itself with an exponent. */
const decimalOf = (value: number) => value.toFixed(12).replace(/\.?0+$/, '')
