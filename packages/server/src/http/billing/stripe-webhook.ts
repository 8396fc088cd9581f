import type { FastifyInstance } from 'fastify'
import type Stripe from 'stripe'
import { stripeOf } from '../../billing/stripe-client.ts'
import { recordPaidInvoice, syncCustomer } from '../../billing/stripe-customers.ts'
import { Failure } from '../../domain/failure.ts'
import type { Services } from '../../services.ts'
import { isProviderEventKnown, rememberProviderEvent } from '../../store/billing/payments.ts'

/** Events after which the payment method or the payment state may have changed. */
const relevantTypes = new Set([
  'checkout.session.completed',
  'customer.deleted',
  'customer.updated',
  'invoice.paid',
  'invoice.payment_failed',
  'payment_method.attached',
  'payment_method.automatically_updated',
  'payment_method.detached',
  'payment_method.updated',
  'setup_intent.setup_failed',
  'setup_intent.succeeded',
])

/** Signatures cover the raw bytes, so this route verifies them before it parses JSON. */
export function mountStripeWebhook(app: FastifyInstance, services: Services): void {
  if (services.config.billing.provider !== 'stripe') return
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, raw, done) =>
      done(null, raw),
    )
    scope.post('/billing/stripe/webhook', async (request, reply) => {
      const event = await verify(services, request.body as Buffer, request.headers['stripe-signature'])
      if (!(await isProviderEventKnown(services.database, event.id))) {
        await handle(services, event).catch((error) => {
          // The provider retries after an error.
          throw new Failure('unavailable', 'The event could not be processed. Try again.', { cause: error })
        })
        await rememberProviderEvent(services.database, event.id)
      }
      return reply.type('application/json').send('{"received":true}')
    })
  })
}

async function verify(
  services: Services,
  raw: Buffer,
  signature: string | string[] | undefined,
): Promise<Stripe.Event> {
  const { webhooks } = await stripeOf(services)
  try {
    return webhooks.constructEvent(raw, signature ?? '', services.config.billing.stripeWebhookSecret)
  } catch (error) {
    throw new Failure('invalid_argument', 'The signature does not match.', { cause: error })
  }
}

async function handle(services: Services, event: Stripe.Event): Promise<void> {
  if (!relevantTypes.has(event.type)) return
  const customerId = customerOf(event)
  if (!customerId) return
  if (event.type === 'invoice.paid')
    await recordPaidInvoice(services, customerId, event.data.object.period_end)
  await syncCustomer(services, customerId)
}

/** A detached payment method has no customer; the event contains the previous customer. */
function customerOf({ data }: Stripe.Event): string | null {
  const object = data.object as { object?: string; id?: string; customer?: string | { id: string } | null }
  if (object.object === 'customer') return object.id ?? null
  const before = (data.previous_attributes as { customer?: string | { id: string } | null } | undefined)
    ?.customer
  const customer = object.customer ?? before
  return typeof customer === 'string' ? customer : (customer?.id ?? null)
}
