import type { Budget } from '@slipway/contract'
import { usdNumber } from '../domain/charges.ts'
import { requireFound } from '../domain/failure.ts'
import { zeroUuid } from '../domain/ids.ts'
import { usdOfMs } from '../domain/money.ts'
import type { ProjectRequester } from '../operations/admission.ts'
import type { Queryable, Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import {
  findBudgetChunkEnd,
  findBudgets,
  listReachedBudgets,
  putBudget,
  type ReachedBudgetRow,
  raiseBudgetAlert,
} from '../store/billing/budgets.ts'
import { emit } from '../store/events/events.ts'
import { budgetView } from '../views/billing.ts'

export const thresholds = [50, 80, 100] as const
const budgetsAtOnce = 500

/** Emits an event for each threshold that a budget has reached, once per month, even if several processes check. */
export async function checkBudgets({ database }: Services): Promise<void> {
  let after = zeroUuid
  for (;;) {
    const upTo = await findBudgetChunkEnd(database, after, budgetsAtOnce)
    if (!upTo) return
    for (const budget of await listReachedBudgets(database, thresholds, { after, upTo }))
      await database.transaction((tx) => alertBudget(tx, budget))
    after = upTo
  }
}

async function alertBudget(tx: Tx, budget: ReachedBudgetRow): Promise<void> {
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
  const [budget] = await findBudgets(db, [projectId])
  return budgetView(requireFound('project', budget))
}

/** If `monthlyUsd` is null, the limit is removed. */
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

/** Returns decimal text without an exponent, which `String` would write for small numbers. */
const decimalOf = (value: number) => value.toFixed(12).replace(/\.?0+$/, '')
