import type { Costs } from '@slipway/contract'
import { chargeLines, sumUsd, totalCents, usdByProduct, usdNumber } from '../domain/charges.ts'
import { addExact, parseDecimal, timesExact, usdOfMs } from '../domain/money.ts'
import { addMonths, invoiceId, monthOf } from '../domain/months.ts'
import type { Queryable } from '../postgres/database.ts'
import { time } from '../postgres/time.ts'
import type { InvoiceRow } from '../store/billing/invoices.ts'
import { currentRate, listMonth, listProjectIds, usageState } from '../store/billing/usage-days.ts'

export async function costsOf(db: Queryable, projectIds: string[]): Promise<Costs> {
  const { usd_per_hour, now, ms_left } = await currentRate(db, projectIds)
  const today = now.toISOString().slice(0, 10)
  const [rows, lastMonth] = await Promise.all([
    listMonth(db, projectIds, monthOf(today)),
    listMonth(db, projectIds, addMonths(monthOf(today), -1)),
  ])
  const spent = sumUsd(rows)
  const perHour = parseDecimal(usd_per_hour)
  return {
    usd_per_hour: usdNumber(perHour),
    today_usd: usdNumber(sumUsd(rows.filter(({ day }) => day === today))),
    month_to_date_usd: usdNumber(spent),
    last_month_usd: usdNumber(sumUsd(lastMonth)),
    // Assumes that everything that runs now will run until the end of the month.
    forecast_usd: usdNumber(addExact(spent, timesExact(usdOfMs(usd_per_hour), BigInt(ms_left)))),
    by_product: usdByProduct(rows).map(({ product_name, usd }) => ({ product_name, usd: usdNumber(usd) })),
    as_of: time(now),
  }
}

/** Returns the invoice of the current month so far; null if there are no costs. */
export async function openInvoice(db: Queryable, organizationId: string): Promise<InvoiceRow | null> {
  const { today } = await usageState(db)
  const month = monthOf(today)
  const lines = chargeLines(await listMonth(db, await listProjectIds(db, organizationId), month))
  const id = invoiceId(organizationId, month)
  const usd_cents = String(totalCents(lines))
  return lines.length > 0 ? { id, month, state: 'open', usd_cents, issued_at: null, lines } : null
}
