import { changeBudget, readBudget } from '../../billing/budgets.ts'
import { costsOf, openInvoice } from '../../billing/costs.ts'
import { createBillingLink } from '../../billing/links.ts'
import { requireFound } from '../../domain/failure.ts'
import { time } from '../../postgres/time.ts'
import { listInvoices } from '../../store/billing/invoices.ts'
import { findPaymentMethod } from '../../store/billing/payments.ts'
import { findResourceCost } from '../../store/billing/usage.ts'
import { listProjectIds } from '../../store/billing/usage-days.ts'
import { findOrganization } from '../../store/identity/organizations.ts'
import { invoiceView, paymentMethodView } from '../../views/billing.ts'
import { type Handlers, requireCaller } from '../context.ts'
import { page } from '../pages.ts'

export const billingHandlers = {
  async organizationBilling(context) {
    const { services, tx, by } = context
    const token = await createBillingLink(tx, by, requireCaller(context), services.config.billing)
    return { url: `${services.publicUrl()}/billing/${token}` }
  },

  async organizationPaymentMethod({ tx, organizationId }) {
    const organization = await findOrganization(tx, organizationId)
    return paymentMethodView(organization!, await findPaymentMethod(tx, organizationId))
  },

  organizationCosts: async ({ tx, organizationId }) => costsOf(tx, await listProjectIds(tx, organizationId)),

  projectCosts: ({ tx, project }) => costsOf(tx, [project.projectId]),

  async projectResourceCost({ tx, project, params: { resource_id } }) {
    const cost = requireFound('resource', await findResourceCost(tx, project.projectId, resource_id))
    return { resource_id, usd: Number(cost.usd), as_of: time(cost.now) }
  },

  /** The invoice of the current month comes first. */
  organizationInvoices(context) {
    const { tx, organizationId } = context
    const read = async (before: string | null, limit: number) => {
      const issued = await listInvoices(tx, organizationId, before, limit)
      const open = before === null ? await openInvoice(tx, organizationId) : null
      return open ? [open, ...issued] : issued
    }
    return page(context, read, invoiceView, (row) => row.month)
  },

  budgetGet: ({ tx, project }) => readBudget(tx, project.projectId),

  async budgetSet({ tx, by, body }) {
    await changeBudget(tx, by, body.monthly_usd, body.hard_stop ?? false)
    return readBudget(tx, by.projectId)
  },
} satisfies Partial<Handlers>
