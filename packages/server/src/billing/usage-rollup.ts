import { chargeLines, totalCents } from '../domain/charges.ts'
import { addMonths, invoiceId, isLastOfMonth, monthOf } from '../domain/months.ts'
import type { Services } from '../services.ts'
import { insertInvoice, listOrganizationsWithUsage } from '../store/billing/invoices.ts'
import { closeDay, findNextOpenDay, listMonth, listProjectIds } from '../store/billing/usage-days.ts'
import type { Tx } from '../store/database.ts'
import { holdLock } from '../store/locks.ts'
import { noteMeterReports } from './meter-reports.ts'
import { chargeDue, systemPayer, tell } from './payments.ts'

/**
 * Closes every day whose time has come, the oldest first, each in a transaction of its own: its usage, on the last of a
 * month its invoices, and what the payment provider has to be told. Intervals of a past day do not change any more, so
 * that it does not matter who does this, when, or how often. Returns the days that it closed.
 */
export async function rollUpUsage(services: Services): Promise<string[]> {
  const { database, config } = services
  const { rollupAtUtc } = config.billing
  const closed: string[] = []
  while ((await findNextOpenDay(database, rollupAtUtc))?.isDue) {
    const day = await database.transaction(async (tx) => {
      await holdLock(tx, 'usageRollup')
      // Another process may have done it while this one waited for the lock.
      const next = await findNextOpenDay(tx, rollupAtUtc)
      if (!next?.isDue) return null
      await closeDay(tx, next.day)
      if (config.billing.provider === 'stripe') await noteMeterReports(tx, next.day)
      if (isLastOfMonth(next.day)) await issueInvoices(tx, services, monthOf(next.day))
      return next.day
    })
    if (day) closed.push(day)
  }
  return closed
}

async function issueInvoices(tx: Tx, { config }: Services, month: string): Promise<void> {
  for (const organizationId of await listOrganizationsWithUsage(tx, month, addMonths(month, 1))) {
    const lines = chargeLines(await listMonth(tx, await listProjectIds(tx, organizationId), month))
    const id = invoiceId(organizationId, month)
    const usdCents = String(totalCents(lines))
    if (!(await insertInvoice(tx, { id, organizationId, month, usdCents, lines }))) continue
    const by = systemPayer(organizationId)
    await tell(tx, by, 'invoice.issued', { invoice_id: id, month, usd: Number(usdCents) / 100 })
    if (config.billing.provider === 'builtin') await chargeDue(tx, by)
  }
}
