import type { Costs } from '@slipway/contract'
import { readBudget } from '../../billing/budgets.ts'
import { chargeLines, sumUsd, totalCents, usdByProduct, usdNumber } from '../../domain/charges.ts'
import { addExact, parseDecimal, timesExact, usdOfMs } from '../../domain/money.ts'
import { invoiceId, monthOf } from '../../domain/months.ts'
import { hashSecret, newToken } from '../../domain/secret.ts'
import { putBudget } from '../../store/billing/budgets.ts'
import { type InvoiceRow, listInvoices } from '../../store/billing/invoices.ts'
import { insertBillingSession } from '../../store/billing/sessions.ts'
import { currentRate, listMonth, listProjectIds, usageState } from '../../store/billing/usage-days.ts'
import type { Queryable } from '../../store/database.ts'
import { time } from '../../store/time.ts'
import { invoiceView } from '../../views/billing.ts'
import type { Handlers } from '../context.ts'
import { requireCaller } from '../mount.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'

type BillingRoutes =
  | 'organizationBilling'
  | 'organizationCosts'
  | 'organizationInvoices'
  | 'projectCosts'
  | 'budgetGet'
  | 'budgetSet'

export const billingHandlers = {
  async organizationBilling(context) {
    const { services, tx, organizationId, audit } = context
    const token = newToken('billing')
    await insertBillingSession(tx, hashSecret(token), organizationId, requireCaller(context).id)
    await audit({
      type: 'organization.billing_link_created',
      resourceType: 'organization',
      resourceId: organizationId,
    })
    return { url: `${services.publicUrl()}/billing/${token}` }
  },

  organizationCosts: async ({ tx, organizationId }) => costsOf(tx, await listProjectIds(tx, organizationId)),

  projectCosts: ({ tx, project }) => costsOf(tx, [project.projectId]),

  async organizationInvoices({ tx, organizationId, query }) {
    const list = `invoices of ${organizationId}`
    const limit = pageLimit(query)
    const before = readPageToken(list, query.page_token)
    const issued = await listInvoices(tx, organizationId, before, limit + 1)
    const open = before === null ? await openInvoice(tx, organizationId) : null
    return toPage(list, open ? [open, ...issued] : issued, limit, (row) => row.month, invoiceView)
  },

  budgetGet: ({ tx, project }) => readBudget(tx, project.projectId),

  async budgetSet({ tx, project, body, audit }) {
    const { projectId } = project
    const limit = body.monthly_usd === null ? null : decimalOf(body.monthly_usd)
    await putBudget(tx, projectId, limit, body.hard_stop ?? false)
    await audit({
      type: 'budget.set',
      resourceType: 'project',
      resourceId: projectId,
      data: { monthly_usd: body.monthly_usd, hard_stop: body.hard_stop ?? false },
    })
    return readBudget(tx, projectId)
  },
} satisfies Handlers<BillingRoutes>

/** Plain digits, also where a number would print itself with an exponent. */
const decimalOf = (value: number) => value.toFixed(12).replace(/\.?0+$/, '')

export async function costsOf(db: Queryable, projectIds: string[]): Promise<Costs> {
  const [rows, { usd_per_hour, now, ms_left }] = await Promise.all([
    listMonth(db, projectIds),
    currentRate(db, projectIds),
  ])
  const spent = sumUsd(rows)
  const perHour = parseDecimal(usd_per_hour)
  return {
    usd_per_hour: usdNumber(perHour),
    month_to_date_usd: usdNumber(spent),
    // If what runs now runs to the end of the month, and nothing else does.
    forecast_usd: usdNumber(addExact(spent, timesExact(usdOfMs(usd_per_hour), BigInt(ms_left)))),
    by_product: usdByProduct(rows).map(({ product_name, usd }) => ({ product_name, usd: usdNumber(usd) })),
    as_of: time(now),
  }
}

/** The month under way, as it would be invoiced now; null before it has cost anything. */
export async function openInvoice(db: Queryable, organizationId: string): Promise<InvoiceRow | null> {
  const { today } = await usageState(db)
  const month = monthOf(today)
  const lines = chargeLines(await listMonth(db, await listProjectIds(db, organizationId), month))
  const id = invoiceId(organizationId, month)
  const usd_cents = String(totalCents(lines))
  return lines.length > 0 ? { id, month, state: 'open', usd_cents, issued_at: null, lines } : null
}
