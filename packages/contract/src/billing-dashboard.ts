import type { Costs, Invoice, PaymentMethod, UsageItem } from './organizations.ts'

/**
 * What the page behind a billing link reads from `/billing/{token}/data`. It is not in the route table, because the token in
 * the path is the only credential and the page is the only client.
 */
export interface BillingDashboard {
  organization_name: string
  /** Empty for the whole organization. A link of a project can add a payment method, but not see or replace one. */
  project_name: string
  /** The page of the console that offers the link. */
  console_path: string
  minutes_left: number
  provider: 'builtin' | 'stripe'
  payment_method: PaymentMethod
  /** A payment method cannot be removed while there are such resources. */
  running: { vms: number; disks: number }
  costs: Pick<Costs, 'usd_per_hour' | 'month_to_date_usd' | 'forecast_usd'>
  /** The current month, such as `2026-11`. */
  current_month: string
  /** The usage of the requested month over all locations, so `location` is empty. */
  usage: UsageItem[]
  /** Without lines; empty for a link of a project. */
  invoices: Omit<Invoice, 'lines'>[]
  /** The cards of the built-in provider; empty with another one. */
  test_cards: { number: string; meaning: string }[]
}

/** What the page of an invoice reads from `/billing/{token}/data/invoices/{id}`. */
export interface BillingInvoice {
  organization_name: string
  /** The names of projects by id. */
  project_names: Record<string, string>
  /** Empty until the invoice is issued. */
  issued_on: string
  invoice: Invoice
}
