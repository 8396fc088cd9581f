import type Stripe from 'stripe'
import { addMonths, monthOf } from '../domain/months.ts'
import type { Services } from '../services.ts'
import { markInvoicesPaid } from '../store/billing/invoices.ts'
import {
  adoptPaymentCustomer,
  applyProviderSync,
  beginProviderSync,
  deletePaymentMethod,
  findOrganizationOfCustomer,
  findPaymentMethod,
  putPaymentMethod,
} from '../store/billing/payments.ts'
import type { OrganizationRequester } from '../store/events/events.ts'
import { findOrganization, type OrganizationRow } from '../store/identity/organizations.ts'
import { changePaymentState, emitBilling, removeCard, requireNothingBilled, systemOf } from './payments.ts'
import { stripeOf } from './stripe-client.ts'

const setUpSeconds = 31 * 60
const isCustomer = (id: string) => id.startsWith('cus_')

/**
 * Creates the customer on first use. Because of the idempotency key, concurrent calls create only one
 * customer.
 */
export async function ensureCustomer(services: Services, organizationId: string): Promise<string> {
  const organization = await findOrganization(services.database, organizationId)
  if (!organization) throw new Error(`there is no organization ${organizationId}`)
  if (isCustomer(organization.payment_customer_id)) return organization.payment_customer_id
  const customer = await (await stripeOf(services)).customers.create(
    { name: organization.name, metadata: { slipway_organization_id: organizationId } },
    { idempotencyKey: `slipway-customer-${organizationId}` },
  )
  return services.database.transaction((tx) => adoptPaymentCustomer(tx, organizationId, customer.id))
}

/** Returns a URL of the provider for adding or replacing a payment method. */
export async function providerLink(
  services: Services,
  organizationId: string,
  returnUrl: string,
): Promise<string> {
  const method = await findPaymentMethod(services.database, organizationId)
  if (method?.provider !== 'stripe') return setUpLink(services, organizationId, returnUrl)
  const session = await (await stripeOf(services)).billingPortal.sessions.create({
    customer: await ensureCustomer(services, organizationId),
    return_url: returnUrl,
    flow_data: {
      type: 'payment_method_update',
      after_completion: { type: 'redirect', redirect: { return_url: returnUrl } },
    },
  })
  return session.url
}

/** Returns a URL of the provider that can only be used to add a payment method. */
export async function setUpLink(
  services: Services,
  organizationId: string,
  returnUrl: string,
): Promise<string> {
  const session = await (await stripeOf(services)).checkout.sessions.create({
    mode: 'setup',
    customer: await ensureCustomer(services, organizationId),
    currency: 'usd',
    success_url: returnUrl,
    cancel_url: returnUrl,
    // The provider's minimum is half an hour.
    expires_at: Math.floor(Date.now() / 1000) + setUpSeconds,
  })
  if (!session.url) throw new Error('the payment provider returned no URL')
  return session.url
}

export async function removeProviderMethod(services: Services, by: OrganizationRequester): Promise<void> {
  const { database } = services
  await database.transaction((tx) => requireNothingBilled(tx, by.organizationId))
  const method = await findPaymentMethod(database, by.organizationId)
  // A card of the built-in provider does not exist at Stripe.
  if (method?.provider === 'builtin') return database.transaction((tx) => removeCard(tx, by))
  const organization = await findOrganization(database, by.organizationId)
  if (method) await (await stripeOf(services)).paymentMethods.detach(method.reference)
  if (organization) await syncCustomer(services, organization.payment_customer_id)
}

/**
 * Updates the payment method and state to what the provider currently reports. The provider's events only
 * trigger this sync, so their order and number do not matter. If two syncs run at the same time, the later read wins.
 */
export async function syncCustomer(services: Services, customerId: string): Promise<void> {
  const { database } = services
  const known = await findOrganizationOfCustomer(database, customerId)
  if (!known) return
  const ticket = await beginProviderSync(database, known.id)
  const { method, isDelinquent } = await readCustomer(await stripeOf(services), customerId)
  await database.transaction(async (tx) => {
    if (!(await applyProviderSync(tx, known.id, ticket))) return
    const organization = (await findOrganization(tx, known.id))!
    const by = systemOf(known.id)
    const before = await findPaymentMethod(tx, known.id)
    if (method?.card) {
      const { brand, last4, exp_month, exp_year } = method.card
      await putPaymentMethod(tx, {
        organization_id: known.id,
        provider: 'stripe',
        reference: method.id,
        brand,
        last4,
        expires_month: exp_month,
        expires_year: exp_year,
      })
      if (before?.reference !== method.id)
        await emitBilling(tx, by, 'organization.payment_method_set', { brand, last4 })
    } else await deletePaymentMethod(tx, known.id)
    await changePaymentState(tx, by, stateOf(organization, method !== null, isDelinquent))
  })
}

function stateOf(
  { payment_state }: OrganizationRow,
  hasMethod: boolean,
  isDelinquent: boolean,
): OrganizationRow['payment_state'] {
  if (!hasMethod) return payment_state === 'never' ? 'never' : 'removed'
  return isDelinquent ? 'declined' : 'active'
}

async function readCustomer(stripe: Stripe, id: string) {
  const customer = await stripe.customers.retrieve(id)
  if (customer.deleted) return { method: null, isDelinquent: false }
  const { data: methods } = await stripe.customers.listPaymentMethods(id, { type: 'card', limit: 100 })
  const chosen = customer.invoice_settings.default_payment_method
  const chosenId = typeof chosen === 'string' ? chosen : chosen?.id
  const method = methods.find((each) => each.id === chosenId) ?? methods[0] ?? null
  // The payment method that Slipway shows must be the one that is charged.
  if (method && method.id !== chosenId)
    await stripe.customers.update(id, { invoice_settings: { default_payment_method: method.id } })
  return { method, isDelinquent: customer.delinquent === true }
}

/** Marks Slipway's unpaid invoices as paid, up to the month that the provider's paid invoice covers. */
export async function recordPaidInvoice(
  services: Services,
  customerId: string,
  periodEndSeconds: number,
): Promise<void> {
  const organization = await findOrganizationOfCustomer(services.database, customerId)
  if (!organization) return
  const endDay = new Date(periodEndSeconds * 1000).toISOString().slice(0, 10)
  await services.database.transaction(async (tx) => {
    const by = systemOf(organization.id)
    for (const id of await markInvoicesPaid(tx, organization.id, addMonths(monthOf(endDay), -1)))
      await emitBilling(tx, by, 'invoice.paid', { invoice_id: id })
  })
}
