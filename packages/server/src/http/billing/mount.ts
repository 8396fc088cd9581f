import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { addCard, removeCard, requireNoActiveMethod, setCard } from '../../billing/payments.ts'
import { providerLink, removeProviderMethod, setUpLink } from '../../billing/stripe-customers.ts'
import { type CardProblem, readTestCard } from '../../domain/cards.ts'
import { Failure } from '../../domain/failure.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Services } from '../../services.ts'
import { findBillingSession } from '../../store/billing/sessions.ts'
import { usageState } from '../../store/billing/usage-days.ts'
import { isOwnOrigin } from '../host-names.ts'
import type { RateLimiter } from '../limits/rate-limit.ts'
import type { SendConsolePage } from '../static-files.ts'
import { type BillingSession, readBillingInvoice, readDashboard } from './dashboard.ts'

const formBytes = 4096
const returnedPath = '/billing/returned'

/**
 * Mounts the billing dashboard: a page of the console, and the routes that it uses. The token in the path is
 * the only credential. It is never logged or sent as a referrer, and other sites do not know it, so they
 * cannot make a browser send these requests.
 */
export function mountBilling(
  app: FastifyInstance,
  services: Services,
  limiter: RateLimiter,
  sendConsolePage: SendConsolePage,
): void {
  app.register(async (scope) => {
    scope.addHook('onRequest', async (request, reply) => {
      limiter.takeAddress(request.ip, reply)
      reply.header('cache-control', 'no-store')
    })
    mountPages(scope, services, sendConsolePage)
    mountReads(scope, services)
    mountChanges(scope, services)
  })
}

/** The pages need no session, but a link that no longer works gets a 404. */
function mountPages(scope: FastifyInstance, services: Services, sendConsolePage: SendConsolePage): void {
  scope.get(returnedPath, async (request, reply) => sendConsolePage(request, reply))
  for (const url of ['/billing/:token', '/billing/:token/invoices/:invoiceId'])
    scope.get(url, async (request, reply) =>
      sendConsolePage(request, reply.code((await findSession(services, request)) ? 200 : 404)),
    )
}

function mountReads(scope: FastifyInstance, services: Services): void {
  scope.get(
    '/billing/:token/data',
    withSession(services, (session, request) =>
      readDashboard(services, session, String((request.query as { month?: unknown }).month)),
    ),
  )
  scope.get(
    '/billing/:token/data/invoices/:invoiceId',
    withSession(services, async (session, request) => {
      const { invoiceId } = request.params as { invoiceId: string }
      const invoice = await readBillingInvoice(services, session, invoiceId)
      if (!invoice) throw new Failure('not_found', 'There is no invoice with this id.')
      return invoice
    }),
  )
}

const cardProblems: Record<CardProblem, string> = {
  unknown: 'This number is not a test card. Real cards are not accepted: use one of the test cards.',
  declined: 'The card was declined. Nothing was changed.',
  expired: 'The card has expired. Nothing was changed.',
  'bad-expiry': 'Enter the expiry as month and year, such as 11/29.',
}

function mountChanges(scope: FastifyInstance, services: Services): void {
  const { database, config } = services
  const post = (path: string, change: Handler<object>) =>
    scope.post(`/billing/:token/${path}`, { bodyLimit: formBytes }, withSession(services, change))

  post('card', async (session, request) => {
    const { number, expiry } = (request.body ?? {}) as Record<string, unknown>
    const { today } = await usageState(database)
    const reading = readTestCard(String(number), String(expiry), today)
    if (config.billing.provider !== 'builtin' || !reading.ok)
      throw new Failure('invalid_argument', cardProblems[reading.ok ? 'unknown' : reading.problem])
    const put = session.projectId ? addCard : setCard
    await database.transaction((tx) => put(tx, requesterOf(session, request), reading.card))
    return {}
  })

  post('card/remove', async (session, request) => {
    if (session.projectId)
      throw new Failure('permission_denied', 'Only an owner can remove the payment method.')
    const by = requesterOf(session, request)
    if (config.billing.provider === 'stripe') await removeProviderMethod(services, by)
    else await database.transaction((tx) => removeCard(tx, by))
    return {}
  })

  post('provider', async ({ organizationId, projectId }, request) => {
    // The provider must not see the token, so it sends the browser back to a page without a token in its URL.
    const returnUrl = `${services.publicUrl()}${returnedPath}`
    if (projectId) await requireNoActiveMethod(database, organizationId)
    const link = projectId ? setUpLink : providerLink
    const url = await link(services, organizationId, returnUrl).catch((error) => {
      request.log.warn({ request: request.id, err: error }, 'payment provider does not respond')
      throw new Failure('unavailable', 'The payment provider does not respond. Try again shortly.')
    })
    return { url }
  })
}

const requesterOf = ({ organizationId, actor }: BillingSession, request: FastifyRequest) => ({
  organizationId,
  projectId: null,
  actor,
  requestId: request.id,
  clientAddress: request.ip,
})

/** Browsers send `Sec-Fetch-Site`, or at least `Origin`. Other programs send neither. */
function isFromOwnPage(request: FastifyRequest, services: Services): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers
  return site === undefined ? origin === undefined || isOwnOrigin(request, services) : site === 'same-origin'
}

type Handler<Result> = (session: BillingSession, request: FastifyRequest) => Promise<Result>

const withSession =
  <Result>(services: Services, handle: Handler<Result>) =>
  async (request: FastifyRequest, _reply: FastifyReply): Promise<Result> => {
    if (request.method === 'POST' && !isFromOwnPage(request, services))
      throw new Failure('permission_denied', 'This form was sent from another site.')
    const session = await findSession(services, request)
    if (!session)
      throw new Failure(
        'not_found',
        'This billing link is no longer valid. Open the billing dashboard again to get a new link.',
      )
    return handle(session, request)
  }

async function findSession(
  { database, config }: Services,
  request: FastifyRequest,
): Promise<BillingSession | null> {
  const { token } = request.params as { token: string }
  const row = await findBillingSession(database, hashSecret(token))
  if (!row || (row.project_id && !config.billing.keysMayOpen)) return null
  return {
    organizationId: row.organization_id,
    projectId: row.project_id,
    actor: row.user_id ? `user:${row.user_id}` : `access_key:${row.access_key_id}`,
    minutesLeft: row.minutes_left,
  }
}
