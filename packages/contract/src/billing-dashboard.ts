import type { Costs, Invoice, PaymentMethod, UsageItem } from './organizations.ts'

/**
 * The data that the page behind a billing link reads from `/billing/{token}/data`. It is not in the route
 * table, because the token in the path is the only credential and the page is the only client.
 */
export interface BillingDashboard {
  organization_name: string
  /**
   * Empty for a link to the whole organization. A link to one project can add a payment method, but cannot
   * replace an existing one.
   */
  project_name: string
  /** The console page that contains the link. */
  console_path: string
  minutes_left: number
  provider: 'builtin' | 'stripe'
  payment_method: PaymentMethod
  /** While these exist, the payment method cannot be removed. */
  running: { vms: number; disks: number }
  costs: Pick<Costs, 'usd_per_hour' | 'month_to_date_usd' | 'forecast_usd'>
  /** The current month, such as `2026-11`. */
  current_month: string
  /** The usage of the requested month over all locations, so `location` is empty. */
  usage: UsageItem[]
  /** Without lines. Empty for a project link. */
  invoices: Omit<Invoice, 'lines'>[]
  /** The test cards of the built-in provider. Empty for other providers. */
  test_cards: { number: string; meaning: string }[]
}

/** The data that an invoice page reads from `/billing/{token}/data/invoices/{id}`. */
export interface BillingInvoice {
  organization_name: string
  /** The names of projects by id. */
  project_names: Record<string, string>
  /** Empty until the invoice is issued. */
  issued_on: string
  invoice: Invoice
}
