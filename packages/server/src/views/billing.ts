import type { Budget, Invoice, PaymentMethod, UsageItem } from '@slipway/contract'
import { unitOf, usdNumber, usdNumberOfCents } from '../domain/charges.ts'
import { quantityHours, usdOfMs } from '../domain/money.ts'
import { addMonths, dayStart } from '../domain/months.ts'
import type { BudgetRow } from '../store/billing/budgets.ts'
import type { InvoiceRow } from '../store/billing/invoices.ts'
import type { PaymentMethodRow } from '../store/billing/payments.ts'
import type { UsageDayRow, UsageLabelRow, UsageResourceRow } from '../store/billing/usage-days.ts'
import type { OrganizationRow } from '../store/identity/organizations.ts'

export const paymentMethodView = (
  { payment_state }: OrganizationRow,
  method: PaymentMethodRow | undefined,
): PaymentMethod => ({
  state: payment_state,
  brand: method?.brand ?? '',
  last4: method?.last4 ?? '',
  expires_month: method ? `${method.expires_year}-${String(method.expires_month).padStart(2, '0')}` : '',
})

export const invoiceView = (row: InvoiceRow): Invoice => ({
  id: row.id,
  period_start: dayStart(row.month),
  period_end: dayStart(addMonths(row.month, 1)),
  state: row.state,
  usd: usdNumberOfCents(row.usd_cents),
  lines: row.lines.map(({ project_id, product_name, quantity_ms, unit, usd_cents }) => ({
    project_id,
    product_name,
    quantity: Number(quantityHours(BigInt(quantity_ms))),
    unit,
    usd: usdNumberOfCents(usd_cents),
  })),
})

export const usageView = (row: UsageDayRow): UsageItem => ({
  date: row.day,
  project_id: row.project_id,
  location: row.location,
  resource_type: row.resource_type,
  product_name: row.product_name,
  quantity: Number(quantityHours(BigInt(row.quantity_ms))),
  unit: unitOf(row.resource_type),
  usd: row.cost_usd_ms === null ? null : usdNumber(usdOfMs(row.cost_usd_ms)),
})

export const resourceUsageView = (row: UsageResourceRow): UsageItem => ({
  ...usageView(row),
  resource_id: row.resource_id,
  resource_name: row.resource_name,
  labels: row.labels,
  reservation_id: row.reservation_id ?? '',
})

export const labelUsageView = (row: UsageLabelRow): UsageItem => ({
  ...usageView(row),
  label_value: row.label_value,
})

export const budgetView = ({ monthly_usd, is_hard_stop, spent_usd_ms }: BudgetRow): Budget => ({
  monthly_usd: monthly_usd === null ? null : Number(monthly_usd),
  hard_stop: is_hard_stop,
  spent_usd: usdNumber(usdOfMs(spent_usd_ms)),
})
