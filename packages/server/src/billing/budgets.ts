import type { Budget } from '@slipway/contract'
import { usdNumber } from '../domain/charges.ts'
import { notFound } from '../domain/failure.ts'
import { usdOfMs } from '../domain/money.ts'
import type { ProjectRequester } from '../operations/admission.ts'
import type { Queryable, Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import {
  findBudget,
  findBudgetPieceEnd,
  listReachedBudgets,
  putBudget,
  type ReachedBudgetRow,
  raiseBudgetAlert,
} from '../store/billing/budgets.ts'
import { emit } from '../store/events/events.ts'
import { budgetView } from '../views/billing.ts'

const thresholds = [50, 80, 100] as const
const budgetsAtOnce = 500

/** Tells of every threshold that a budget has reached, once a month each, in whatever process looks first. */
export async function checkBudgets({ database }: Services): Promise<void> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const upTo = await findBudgetPieceEnd(database, after, budgetsAtOnce)
    if (!upTo) return
    for (const budget of await listReachedBudgets(database, thresholds, { after, upTo }))
      await database.transaction((tx) => tellOfBudget(tx, budget))
    after = upTo
  }
}

async function tellOfBudget(tx: Tx, budget: ReachedBudgetRow): Promise<void> {
  if (!(await raiseBudgetAlert(tx, budget.project_id, budget.threshold_percent))) return
  await emit(tx, {
    type: 'budget.threshold_reached',
    resourceType: 'project',
    resourceId: budget.project_id,
    projectId: budget.project_id,
    data: {
      name: budget.project_name,
      threshold_percent: budget.threshold_percent,
      monthly_usd: Number(budget.monthly_usd),
      spent_usd: usdNumber(usdOfMs(budget.spent_usd_ms)),
      hard_stop: budget.is_hard_stop,
    },
  })
}

export async function readBudget(db: Queryable, projectId: string): Promise<Budget> {
  const budget = await findBudget(db, projectId)
  if (!budget) throw notFound('project')
  return budgetView(budget)
}

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
