import { routeIds, routeOf } from '@slipway/contract'
import fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { countOperations } from '../store/operations.ts'
import { Access } from './access.ts'
import { parseJson } from './body.ts'
import type { Services } from './context.ts'
import { mountDocs } from './docs.ts'
import { sendFailure, toFailure } from './errors.ts'
import { handlers } from './handlers.ts'
import { mountHealth } from './health.ts'
import { Metrics } from './metrics.ts'
import { mountRoutes } from './mount.ts'
import { RateLimiter } from './rate-limit.ts'

const headerBytes = 16 * 1024
const requestTimeMs = 30_000

export interface App {
  fastify: FastifyInstance
  access: Access
  metrics: Metrics
}

export function buildApp(services: Services, log: FastifyBaseLogger): App {
  const { server, limits } = services.config
  const app = fastify({
    loggerInstance: log,
    bodyLimit: limits.bodyBytes,
    trustProxy: server.trustedProxies.length > 0 ? server.trustedProxies : false,
    requestIdHeader: false,
    genReqId: (request) => keptRequestId(request.headers['x-request-id']) ?? uuid(),
    requestTimeout: requestTimeMs,
    http: { maxHeaderSize: headerBytes, headersTimeout: 10_000, keepAliveTimeout: 72_000 },
    exposeHeadRoutes: false,
    disableRequestLogging: true,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 200 },
    return503OnClosing: true,
    clientErrorHandler: (_error, socket) => refuseMalformed(socket),
  })
  const metrics = new Metrics(services.database, () => countOperations(services.database))
  const access = new Access(services.database, services.signals)

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, raw, done) => {
    try {
      done(null, raw.length === 0 ? undefined : parseJson(raw as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })

  app.addHook('onRequest', async (request, reply) => {
    reply.header('X-Request-Id', request.id)
    for (const [name, value] of Object.entries(securityHeaders)) reply.header(name, value)
  })
  app.addHook('onResponse', async (request, reply) => {
    const config = request.routeOptions.config as { routeId?: string }
    const route = config.routeId ?? request.routeOptions.url ?? 'none'
    metrics.observe(route, reply.statusCode, reply.elapsedTime / 1000)
    // The path without its query: filters and links may carry what no log should.
    const path = request.url.split('?', 1)[0]
    const caller = request.grant ? `${request.grant.caller.kind}:${request.grant.caller.id}` : ''
    request.log.info(
      {
        route,
        method: request.method,
        path,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
        caller,
      },
      'request',
    )
  })
  app.setErrorHandler((error, request, reply) => sendFailure(toFailure(error), request, reply))
  app.setNotFoundHandler((request, reply) => {
    const allowed = allowedMethods(request.url.split('?', 1)[0] ?? '')
    if (allowed.length === 0)
      return sendFailure(new Failure('not_found', 'There is nothing at this path.'), request, reply)
    reply.header('Allow', allowed.join(', '))
    const message = `${request.method} is not possible here: ${allowed.join(', ')} is.`
    return sendFailure(new Failure('method_not_allowed', message), request, reply)
  })

  mountRoutes(app, services, access, new RateLimiter(limits), handlers)
  mountHealth(app, services, metrics)
  mountDocs(app, { version: services.version, serverUrl: services.publicUrl })
  return { fastify: app, access, metrics }
}

/** JSON answers are never a page: nothing may run, frame or sniff them. Pages set their own policy. */
const securityHeaders = {
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Strict-Transport-Security': 'max-age=31536000',
}

function keptRequestId(given: string | string[] | undefined): string | undefined {
  return typeof given === 'string' && /^[\x21-\x7e]{1,128}$/.test(given) ? given : undefined
}

const paths = routeIds.map((id) => {
  const { path, method } = routeOf(id)
  return { method, expression: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`) }
})

const allowedMethods = (path: string) => [
  ...new Set(paths.filter(({ expression }) => expression.test(path)).map(({ method }) => method)),
]

/** What Node's parser refuses never reaches a handler, but still gets the shape of every other error. */
function refuseMalformed(socket: import('node:net').Socket): void {
  if (!socket.writable) return
  const requestId = uuid()
  const text = JSON.stringify({
    code: 'invalid_argument',
    message: 'The request is malformed, too slow, or its headers are over 16 KiB.',
    request_id: requestId,
  })
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nX-Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  )
}
