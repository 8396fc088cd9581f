import { chargeLines, totalCents } from '../domain/charges.ts'
import { invoiceId, isLastOfMonth, monthOf } from '../domain/months.ts'
import type { Tx } from '../postgres/database.ts'
import { holdLock } from '../postgres/locks.ts'
import type { Services } from '../services.ts'
import { insertInvoice } from '../store/billing/invoices.ts'
import {
  advanceRollup,
  beginRollup,
  endRollup,
  findNextWithUsage,
  findRollup,
  findShardEnd,
  type RollupRow,
  startOrganizationStage,
} from '../store/billing/rollups.ts'
import {
  addUsageOfDay,
  findNextOpenDay,
  isDayClosed,
  listMonth,
  listProjectIds,
  markDayClosed,
} from '../store/billing/usage-days.ts'
import { recordMeterReport } from './meter-reports.ts'
import { chargeDue, emitBilling, systemOf } from './payments.ts'

const projectsPerShard = 500

/**
 * Closes every day that is due, starting with the oldest. It writes the day's usage in shards of projects, and
 * then, for each organization, the report to the payment provider and, on the last day of a month, the invoice. Each
 * of these steps is one transaction that also records the progress. Metered intervals of a past day do not change,
 * so any process can repeat or continue the work at any time.
 */
export async function rollUpUsage(services: Services): Promise<void> {
  while (await services.database.transaction((tx) => takeStep(services, tx)));
}

/** Returns whether there was something to do. The lock makes processes take turns. */
async function takeStep(services: Services, tx: Tx): Promise<boolean> {
  await holdLock(tx, 'usageRollup')
  const rollup = (await findRollup(tx)) ?? (await beginNext(services, tx))
  if (!rollup) return false
  await (rollup.stage === 'usage' ? addShard : closeNextOrganization)(services, tx, rollup)
  return true
}

async function beginNext({ config }: Services, tx: Tx): Promise<RollupRow | null> {
  const next = await findNextOpenDay(tx, config.billing.rollupAtUtc)
  return next && next.overdueSeconds >= 0 ? beginRollup(tx, next.day) : null
}

async function addShard(services: Services, tx: Tx, { day, done_up_to }: RollupRow): Promise<void> {
  // A server of an earlier version may have closed the whole day in one transaction.
  if (await isDayClosed(tx, day)) return void (await endRollup(tx, day))
  const upTo = await findShardEnd(tx, done_up_to, projectsPerShard)
  if (upTo) {
    await addUsageOfDay(tx, day, { after: done_up_to, upTo })
    await advanceRollup(tx, day, upTo)
    return
  }
  await markDayClosed(tx, day)
  const hasMore = services.config.billing.provider === 'stripe' || isLastOfMonth(day)
  await (hasMore ? startOrganizationStage(tx, day) : endRollup(tx, day))
}

async function closeNextOrganization(
  { config }: Services,
  tx: Tx,
  { day, done_up_to }: RollupRow,
): Promise<void> {
  const fromDay = isLastOfMonth(day) ? monthOf(day) : day
  const organizationId = await findNextWithUsage(tx, done_up_to, fromDay, day)
  if (!organizationId) return void (await endRollup(tx, day))
  if (config.billing.provider === 'stripe') await recordMeterReport(tx, organizationId, day)
  if (isLastOfMonth(day)) {
    await issueInvoice(tx, organizationId, monthOf(day))
    if (config.billing.provider === 'builtin') await chargeDue(tx, systemOf(organizationId))
  }
  await advanceRollup(tx, day, organizationId)
}

async function issueInvoice(tx: Tx, organizationId: string, month: string): Promise<void> {
  const lines = chargeLines(await listMonth(tx, await listProjectIds(tx, organizationId), month))
  const id = invoiceId(organizationId, month)
  const usdCents = String(totalCents(lines))
  if (!(await insertInvoice(tx, { id, organizationId, month, usdCents, lines }))) return
  await emitBilling(tx, systemOf(organizationId), 'invoice.issued', {
    invoice_id: id,
    month,
    usd: Number(usdCents) / 100,
  })
}
