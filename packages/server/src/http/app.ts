import { randomUUID } from 'node:crypto'
import type { Server as HttpsServer } from 'node:https'
import { routeIds, routeOf } from '@slipway/contract'
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify'
import { Failure } from '../domain/failure.ts'
import { Catalogue } from '../fleet/offers.ts'
import { CatalogueCache } from '../operations/catalogue.ts'
import type { Services } from '../services.ts'
import { Access } from './access.ts'
import { mountBilling } from './billing/mount.ts'
import { mountStripeWebhook } from './billing/stripe-webhook.ts'
import { parseJson } from './body.ts'
import { consolePath, mountConsoles } from './console/mount.ts'
import { mountConsoleSession } from './console-session.ts'
import type { HttpServices } from './context.ts'
import { mountDocs } from './docs/mount.ts'
import { sendFailure, toFailure } from './errors.ts'
import { mountFamily } from './family/mount.ts'
import { handlers } from './handlers/index.ts'
import { mountHealth } from './health.ts'
import { checkHostNames } from './host-names.ts'
import { limitConnections } from './limits/connections.ts'
import { RateLimiter } from './limits/rate-limit.ts'
import { Metrics } from './metrics/metrics.ts'
import { mountRoutes } from './mount.ts'
import { mountOidc } from './oidc.ts'
import { mountStaticFiles } from './static-files.ts'
import { OperationWaits } from './streams/operation-waits.ts'
import { EventStreams } from './streams/streams.ts'
import { readTls, watchTls } from './tls.ts'

const headerBytes = 16 * 1024
const requestTimeMs = 30_000
const headersTimeMs = 10_000
/** How often Node checks for clients that are too slow. */
const slowClientCheckMs = 1_000

/** The controls (levers) of a service that was started with `--dev`. */
export interface DevMode {
  watch(app: FastifyInstance): void
  mount(app: FastifyInstance, services: HttpServices): void
}

export interface App {
  fastify: FastifyInstance
  access: Access
  metrics: Metrics
}

export function buildApp(base: Services, log: FastifyBaseLogger, dev?: DevMode): App {
  const { server, limits } = base.config
  const http = {
    maxHeaderSize: headerBytes,
    headersTimeout: headersTimeMs,
    connectionsCheckingInterval: slowClientCheckMs,
  }
  const tls = readTls(server)
  const options: FastifyServerOptions = {
    loggerInstance: log,
    bodyLimit: limits.bodyBytes,
    trustProxy: server.trustedProxies.length > 0 ? server.trustedProxies : false,
    requestIdHeader: false,
    genReqId: (request) => keptRequestId(request.headers['x-request-id']) ?? randomUUID(),
    requestTimeout: requestTimeMs,
    ...(tls ? { https: { ...http, ...tls } } : { http }),
    exposeHeadRoutes: true,
    logController: new LogController({ disableRequestLogging: true }),
    // A logger per request would cost more than adding the request id to the few lines that need it.
    childLoggerFactory: (logger) => logger,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: headerBytes, ignoreTrailingSlash: true },
    // Requests that arrive during shutdown get a response; then their connection is closed.
    return503OnClosing: false,
    clientErrorHandler: (_error, socket) => refuseMalformed(socket),
    frameworkErrors: (error, request, reply) => {
      addCommonHeaders(request, reply)
      limiter.showAddress(request.ip, reply)
      sendFailure(toFailure(error), request, reply)
    },
  }
  const app = fastify(options)
  if (tls) {
    const unwatch = watchTls(server, app.server as unknown as HttpsServer, log)
    app.addHook('onClose', async () => unwatch())
  }
  const limiter = new RateLimiter(limits)
  const { database, signals } = base
  const metrics = new Metrics(base)
  const access = new Access(database, signals)
  const streams = new EventStreams(database, signals, access, limits.organizationStreams)
  const operationWaits = new OperationWaits(database, signals, limits.organizationStreams)
  const catalogue = new Catalogue(database)
  const services: HttpServices = {
    ...base,
    access,
    streams,
    operationWaits,
    catalogue,
    catalogueCache: new CatalogueCache(),
    scrapes: new RateLimiter({ requestsPerSecond: 10 / 60, burst: 10 }),
  }
  app.addHook('preClose', async () => {
    streams.close()
    operationWaits.close()
  })

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, raw, done) => {
    try {
      done(null, raw.length === 0 ? undefined : parseJson(raw as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })

  let isProxyNoticed = server.trustedProxies.length > 0
  app.addHook('onRequest', (request, reply, done) => {
    addCommonHeaders(request, reply)
    if (!isProxyNoticed && request.headers['x-forwarded-for'] !== undefined) {
      isProxyNoticed = true
      log.warn(
        { peer: request.ip },
        'X-Forwarded-For is ignored because its sender is not a trusted proxy, so all requests from this sender count as one address. Add the proxy to [server] trusted_proxies',
      )
    }
    done()
  })
  checkHostNames(app, services)
  limitConnections(app, { ...limits, trustedProxies: server.trustedProxies })
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (!reply.hasHeader('ratelimit-limit')) limiter.showAddress(request.ip, reply)
    done()
  })
  // The log lines of requests contain no secrets, and redacting them would cost more than writing them.
  const requestLog = log.child({}, { redact: [] })
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeId ?? request.routeOptions.url ?? 'none'
    metrics.observe(route, reply.statusCode, reply.elapsedTime / 1000)
    requestLog.info(
      {
        request: request.id,
        route,
        method: request.method,
        path: loggedPath(request.url, route),
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
        caller: request.grant?.caller.key ?? '',
        // Undefined once the client has disconnected.
        client: request.ip ?? '',
      },
      'request',
    )
    done()
  })
  app.setErrorHandler((error, request, reply) => sendFailure(toFailure(error), request, reply))
  app.setNotFoundHandler((request, reply) => {
    limiter.takeAddress(request.ip, reply)
    const path = (request.url.split('?', 1)[0] ?? '').replace(/(?<=.)\/$/, '')
    const allowed = allowedMethods(path)
    if (allowed.length === 0 && app.hasRoute({ method: 'GET', url: path })) allowed.push('GET', 'HEAD')
    if (allowed.length === 0)
      return sendFailure(new Failure('not_found', 'No such endpoint.'), request, reply)
    reply.header('Allow', allowed.join(', '))
    const message = `Method not allowed. Allowed: ${allowed.join(', ')}.`
    return sendFailure(new Failure('method_not_allowed', message), request, reply)
  })

  dev?.watch(app)
  mountRoutes(app, services, limiter, handlers)
  mountFamily(app, services, limiter)
  mountConsoles(app, services, limiter)
  mountOidc(app, services, limiter)
  mountStripeWebhook(app, services)
  mountHealth(app, services, metrics, limiter)
  mountDocs(app, { version: services.version, serverUrl: services.publicUrl }, limiter)
  mountConsoleSession(app, services)
  dev?.mount(app, services)
  const sendConsolePage = mountStaticFiles(app, dev !== undefined)
  mountBilling(app, services, limiter, sendConsolePage)
  return { fastify: app, access, metrics }
}

/**
 * Browsers must not run scripts in JSON responses, frame them or guess their type. Pages set their own policy. Header
 * names are in lower case, because Fastify would otherwise convert them for every response.
 */
const securityHeaders = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'strict-transport-security': 'max-age=31536000',
}

/** Removes the query, the token of a billing link and the ticket of a console, so that no secret is logged. */
function loggedPath(url: string, route: string): string {
  if (route.startsWith('/billing/:token') || route.startsWith(consolePath)) return route
  const queryAt = url.indexOf('?')
  const path = queryAt < 0 ? url : url.slice(0, queryAt)
  return path.includes('slpb_') ? path.replace(/slpb_[\w-]+/g, ':token') : path
}

function addCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id)
  reply.headers(securityHeaders)
}

function keptRequestId(given: string | string[] | undefined): string | undefined {
  return typeof given === 'string' && /^[\x21-\x7e]{1,128}$/.test(given) ? given : undefined
}

const paths = routeIds.map((id) => {
  const { path, method } = routeOf(id)
  return { method, expression: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`) }
})

const allowedMethods = (path: string): string[] => {
  const known = paths.filter(({ expression }) => expression.test(path)).map(({ method }) => method)
  return [...new Set(known.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))]
}

/** Requests that Node's parser rejects do not reach a handler, but their responses have the same error format. */
function refuseMalformed(socket: import('node:net').Socket): void {
  if (!socket.writable) return
  const requestId = randomUUID()
  const text = JSON.stringify({
    code: 'invalid_argument',
    message: 'The request is malformed, too slow, or its headers are over 16 KiB.',
    request_id: requestId,
  })
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nX-Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
    // A client that is slow to send may be slow to disconnect too.
    () => socket.destroy(),
  )
}
