import { chargeLines, totalCents } from '../domain/charges.ts'
import { addDays, monthOf } from '../domain/months.ts'
import type { Tx } from '../store/database.ts'
import { listOrganizationsWithUsage } from '../store/invoices.ts'
import { insertMeterReport } from '../store/meter-reports.ts'
import { listMonth, listProjectIds } from '../store/usage-days.ts'

/**
 * What a day adds to the month's invoice, in cents. Since a line only ever grows, no day takes anything back, and the
 * days of a month add up to its invoice to the cent.
 */
export async function noteMeterReports(tx: Tx, day: string): Promise<void> {
  for (const organizationId of await listOrganizationsWithUsage(tx, day, addDays(day, 1))) {
    const rows = await listMonth(tx, await listProjectIds(tx, organizationId), monthOf(day))
    const until = (isCounted: (rowDay: string) => boolean) =>
      totalCents(chargeLines(rows.filter((row) => isCounted(row.day))))
    const cents = until((rowDay) => rowDay <= day) - until((rowDay) => rowDay < day)
    if (cents > 0n) await insertMeterReport(tx, organizationId, day, String(cents))
  }
}
