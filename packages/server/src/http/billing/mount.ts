import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { costsOf, openInvoice } from '../../billing/costs.ts'
import { addCard, removeCard, requireNoActiveMethod, setCard } from '../../billing/payments.ts'
import { providerLink, removeProviderMethod, setUpLink } from '../../billing/stripe-customers.ts'
import { readTestCard } from '../../domain/cards.ts'
import { Failure } from '../../domain/failure.ts'
import { isUuid } from '../../domain/ids.ts'
import { monthOf } from '../../domain/months.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Services } from '../../services.ts'
import { findInvoice, listInvoices, listProjectNames } from '../../store/billing/invoices.ts'
import { countRunning, findPaymentMethod } from '../../store/billing/payments.ts'
import { findBillingSession } from '../../store/billing/sessions.ts'
import { listMonth, listProjectIds, usageState } from '../../store/billing/usage-days.ts'
import { findOrganization } from '../../store/identity/organizations.ts'
import { findProject } from '../../store/identity/projects.ts'
import { toFailure } from '../errors.ts'
import { isOwnOrigin } from '../host-names.ts'
import type { RateLimiter } from '../limits/rate-limit.ts'
import { type Dashboard, dashboardPage, notices } from './dashboard-page.ts'
import { pageSecurityPolicy, stylePath } from './html.ts'
import { failedPage, invoicePage, missingPage, returnedPage } from './invoice-page.ts'
import { billingStyle } from './style.ts'

const formBytes = 4096
const returnedPath = '/billing/returned'
const invoicesShown = 60

interface Session {
  base: string
  organizationId: string
  /** Set for a link that shows one project and can only add a payment method; null for the whole organization. */
  projectId: string | null
  actor: string
  minutesLeft: number
}

/**
 * The billing dashboard. The token in the path is the only credential. It is never logged or sent as a referrer, and other
 * sites do not know it, so they cannot make a browser post these forms.
 */
export function mountBilling(app: FastifyInstance, services: Services, limiter: RateLimiter): void {
  app.get(stylePath, async (_request, reply) =>
    reply.type('text/css; charset=utf-8').header('Cache-Control', 'no-cache').send(billingStyle()),
  )
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: formBytes },
      (_request, text, done) => done(null, Object.fromEntries(new URLSearchParams(String(text)))),
    )
    scope.addHook('onRequest', async (request, reply) => {
      limiter.takeAddress(request.ip, reply)
      reply.header('Content-Security-Policy', pageSecurityPolicy).header('Cache-Control', 'no-store')
    })
    scope.setErrorHandler((error, request, reply) => sendFailedPage(error, request, reply))
    mountPages(scope, services)
    mountForms(scope, services)
  })
}

function mountPages(scope: FastifyInstance, services: Services): void {
  const { database } = services
  scope.get(returnedPath, async (_request, reply) => sendPage(reply, returnedPage()))
  scope.get(
    '/billing/:token',
    withSession(services, async (session, request, reply) =>
      sendPage(reply, dashboardPage(await readDashboard(services, session, request.query as Query))),
    ),
  )
  scope.get(
    '/billing/:token/invoices/:invoiceId',
    withSession(services, async (session, request, reply) => {
      const { invoiceId } = request.params as { invoiceId: string }
      const invoice =
        !session.projectId && isUuid(invoiceId) && (await readInvoice(services, session, invoiceId))
      if (!invoice) return sendPage(reply.code(404), failedPage('There is no invoice with this id.'))
      const { base, organizationId } = session
      const { name } = (await findOrganization(database, organizationId))!
      const projectNames = await listProjectNames(database, organizationId)
      return sendPage(reply, invoicePage({ base, organizationName: name, projectNames, invoice }))
    }),
  )
}

function mountForms(scope: FastifyInstance, services: Services): void {
  const { database, config } = services
  const done = (reply: FastifyReply, { base }: Session, notice: keyof typeof notices) =>
    reply.redirect(`${base}?notice=${notice}`, 303)
  const requesterOf = ({ organizationId, actor }: Session, request: FastifyRequest) => ({
    organizationId,
    projectId: null,
    actor,
    requestId: request.id,
    clientAddress: request.ip,
  })
  /** Shows a conflict with a concurrent change as a notice on the page. */
  const onConflict =
    (reply: FastifyReply, session: Session, notice: keyof typeof notices) => (error: unknown) => {
      if (error instanceof Failure && error.code === 'conflict') return done(reply, session, notice)
      throw error
    }

  scope.post(
    '/billing/:token/card',
    withSession(services, async (session, request, reply) => {
      if (config.billing.provider !== 'builtin') return done(reply, session, 'unknown')
      const { number = '', expiry = '' } = (request.body ?? {}) as Record<string, string>
      const { today } = await usageState(database)
      const reading = readTestCard(number, expiry, today)
      if (!reading.ok) return done(reply, session, reading.problem)
      const put = session.projectId ? addCard : setCard
      return database
        .transaction((tx) => put(tx, requesterOf(session, request), reading.card))
        .then(() => done(reply, session, 'saved'))
        .catch(onConflict(reply, session, 'active'))
    }),
  )

  scope.post(
    '/billing/:token/card/remove',
    withSession(services, async (session, request, reply) => {
      if (session.projectId)
        throw new Failure('permission_denied', 'Only an owner can remove the payment method.')
      const by = requesterOf(session, request)
      const removed =
        config.billing.provider === 'stripe'
          ? removeProviderMethod(services, by)
          : database.transaction((tx) => removeCard(tx, by))
      return removed.then(() => done(reply, session, 'removed')).catch(onConflict(reply, session, 'running'))
    }),
  )

  scope.post(
    '/billing/:token/provider',
    withSession(services, async (session, request, reply) => {
      // The provider must not see the token: it sends the browser back to a page without one.
      const returnUrl = `${services.publicUrl()}${returnedPath}`
      const { organizationId, projectId } = session
      const findUrl = async () => {
        if (!projectId) return providerLink(services, organizationId, returnUrl)
        await requireNoActiveMethod(database, organizationId)
        return setUpLink(services, organizationId, returnUrl)
      }
      return findUrl()
        .then((url) => reply.redirect(url, 303))
        .catch(onConflict(reply, session, 'active'))
        .catch((error) => {
          request.log.warn({ request: request.id, err: error }, 'payment provider does not respond')
          return done(reply, session, 'unavailable')
        })
    }),
  )
}

async function readInvoice({ database }: Services, { organizationId }: Session, id: string) {
  const open = await openInvoice(database, organizationId)
  return open?.id === id ? open : findInvoice(database, organizationId, id)
}

type Query = Record<string, unknown>
type PageHandler = (session: Session, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** Browsers send the site or at least the origin of a form. Programs other than browsers send neither. */
function isOwnForm(request: FastifyRequest, services: Services): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers
  return site === undefined ? origin === undefined || isOwnOrigin(request, services) : site === 'same-origin'
}

function withSession(services: Services, handle: PageHandler) {
  const { database, config } = services
  return async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.method === 'POST' && !isOwnForm(request, services))
      throw new Failure('permission_denied', 'This form was sent from another site.')
    const { token } = request.params as { token: string }
    const row = await findBillingSession(database, hashSecret(token))
    if (!row || (row.project_id && !config.billing.keysMayOpen))
      return sendPage(reply.code(404), missingPage())
    const session = {
      base: `/billing/${token}`,
      organizationId: row.organization_id,
      projectId: row.project_id,
      actor: row.user_id ? `user:${row.user_id}` : `access_key:${row.access_key_id}`,
      minutesLeft: row.minutes_left,
    }
    return handle(session, request, reply)
  }
}

async function readDashboard(
  { database, config }: Services,
  { organizationId, projectId, base, minutesLeft }: Session,
  query: Query,
): Promise<Dashboard> {
  const ids = projectId ? [projectId] : await listProjectIds(database, organizationId)
  const { today } = await usageState(database)
  const month = /^[12][0-9]{3}-(0[1-9]|1[0-2])$/.test(String(query.month))
    ? `${query.month}-01`
    : monthOf(today)
  const [organization, project, method, running, costs, rows, open, issued] = await Promise.all([
    findOrganization(database, organizationId),
    projectId && findProject(database, projectId),
    findPaymentMethod(database, organizationId),
    countRunning(database, organizationId),
    costsOf(database, ids),
    listMonth(database, ids, month),
    openInvoice(database, organizationId),
    listInvoices(database, organizationId, null, invoicesShown),
  ])
  return {
    base,
    consolePath: ids[0] ? `/projects/${ids[0]}/settings/billing` : '/',
    minutesLeft,
    today,
    organization: organization!,
    project: project || null,
    provider: config.billing.provider,
    method,
    running,
    costs,
    month,
    rows,
    invoices: open ? [open, ...issued] : issued,
    notice: Object.hasOwn(notices, String(query.notice)) ? (query.notice as keyof typeof notices) : undefined,
  }
}

// With the policy no-referrer, browsers would not send the origin of our own forms.
const sendPage = (reply: FastifyReply, text: string) =>
  reply.header('referrer-policy', 'same-origin').type('text/html; charset=utf-8').send(text)

function sendFailedPage(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const failure = toFailure(error)
  const status =
    { permission_denied: 403, rate_limited: 429, unavailable: 503, internal_error: 500 }[
      failure.code as string
    ] ?? 400
  if (status >= 500)
    request.log.error({ request: request.id, err: failure.cause ?? failure }, 'billing page failed')
  return sendPage(reply.code(status), failedPage(failure.message))
}
