import { sumUsd, usdNumber } from '../domain/charges.ts'
import { Failure } from '../domain/failure.ts'
import { compareExact, displayUsd, type Exact, parseDecimal, timesExact } from '../domain/money.ts'
import { addMonths, monthOf } from '../domain/months.ts'
import { findBudget, listLimitedBudgets, raiseBudgetAlert } from '../store/budgets.ts'
import type { Queryable, Tx } from '../store/database.ts'
import { emitEvent } from '../store/events.ts'
import { findProject } from '../store/projects.ts'
import { listMonth, usageState } from '../store/usage-days.ts'
import type { Workshop } from './operation.ts'

export const thresholds = [50, 80, 100] as const

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

/** Tells of every threshold that a budget has reached, once a month each, in whatever process looks first. */
export async function checkBudgets({ database, signals }: Workshop): Promise<void> {
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
        await emitEvent(tx, {
          type: 'budget.threshold_reached',
          resourceType: 'project',
          resourceId: budget.project_id,
          projectId: budget.project_id,
          actor: 'system',
          requestId: '',
          data: {
            name: budget.project_name,
            threshold_percent: percent,
            monthly_usd: Number(budget.monthly_usd),
            spent_usd: usdNumber(spent),
            hard_stop: budget.is_hard_stop,
          },
        })
        tx.afterCommit(() => signals.send('events'))
      }
    })
  }
}
