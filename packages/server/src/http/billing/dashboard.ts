import type { BillingDashboard, BillingInvoice } from '@slipway/contract'
import { costsOf, openInvoice } from '../../billing/costs.ts'
import { testCards } from '../../domain/cards.ts'
import { isUuid } from '../../domain/ids.ts'
import { monthOf } from '../../domain/months.ts'
import type { Services } from '../../services.ts'
import { findInvoice, listInvoices, listProjectNames } from '../../store/billing/invoices.ts'
import { countBilled, findPaymentMethod } from '../../store/billing/payments.ts'
import { listMonth, listProjectIds, usageState } from '../../store/billing/usage-days.ts'
import { findOrganization } from '../../store/identity/organizations.ts'
import { findProject } from '../../store/identity/projects.ts'
import { invoiceView, paymentMethodView, usageView } from '../../views/billing.ts'

const invoicesShown = 60

export interface BillingSession {
  organizationId: string
  /** Set for a link that shows one project and can only add a payment method; null for the whole organization. */
  projectId: string | null
  actor: string
  minutesLeft: number
}

/** Reads the dashboard with the usage of a month such as `2026-11`; any other text means the current month. */
export async function readDashboard(
  { database, config }: Services,
  { organizationId, projectId, minutesLeft }: BillingSession,
  month: string,
): Promise<BillingDashboard> {
  const ids = projectId ? [projectId] : await listProjectIds(database, organizationId)
  const { today } = await usageState(database)
  const isMonth = /^[12][0-9]{3}-(0[1-9]|1[0-2])$/.test(month)
  const [organization, project, method, running, costs, rows, invoices] = await Promise.all([
    findOrganization(database, organizationId),
    projectId ? findProject(database, projectId) : undefined,
    projectId ? undefined : findPaymentMethod(database, organizationId),
    projectId ? { vms: 0, disks: 0 } : countBilled(database, organizationId),
    costsOf(database, ids),
    listMonth(database, ids, isMonth ? `${month}-01` : monthOf(today)),
    projectId ? [] : readInvoices({ database }, organizationId),
  ])
  const { usd_per_hour, month_to_date_usd, forecast_usd } = costs
  return {
    organization_name: organization!.name,
    project_name: project?.name ?? '',
    console_path: ids[0] ? `/projects/${ids[0]}/settings/billing` : '/',
    minutes_left: minutesLeft,
    provider: config.billing.provider,
    payment_method: paymentMethodView(organization!, method),
    running,
    costs: { usd_per_hour, month_to_date_usd, forecast_usd },
    current_month: today.slice(0, 7),
    usage: rows.map((row) => usageView({ ...row, location: '' })),
    invoices: invoices.map(({ lines, ...invoice }) => invoice),
    test_cards:
      config.billing.provider === 'builtin'
        ? testCards.map(({ number, meaning }) => ({ number, meaning }))
        : [],
  }
}

async function readInvoices({ database }: Pick<Services, 'database'>, organizationId: string) {
  const [open, issued] = await Promise.all([
    openInvoice(database, organizationId),
    listInvoices(database, organizationId, null, invoicesShown),
  ])
  return [...(open ? [open] : []), ...issued].map(invoiceView)
}

/** Returns null if the organization has no such invoice, or if the link shows only one project. */
export async function readBillingInvoice(
  { database }: Services,
  { organizationId, projectId }: BillingSession,
  id: string,
): Promise<BillingInvoice | null> {
  if (projectId || !isUuid(id)) return null
  const open = await openInvoice(database, organizationId)
  const row = open?.id === id ? open : await findInvoice(database, organizationId, id)
  if (!row) return null
  const [organization, names] = await Promise.all([
    findOrganization(database, organizationId),
    listProjectNames(database, organizationId),
  ])
  return {
    organization_name: organization!.name,
    project_names: Object.fromEntries(names),
    issued_on: row.issued_at?.toISOString().slice(0, 10) ?? '',
    invoice: invoiceView(row),
  }
}
