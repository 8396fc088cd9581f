import { type Route, type RouteId, routeIds, routeOf } from '@slipway/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isUuid } from '../domain/ids.ts'
import type { Tx } from '../postgres/database.ts'
import { JsonText } from '../postgres/json.ts'
import type { Requester } from '../store/events/events.ts'
import type { Caller } from '../store/identity/access.ts'
import { type Access, bearerOf, type Grant, ownerOf, paymentRequired, publicOwner } from './access.ts'
import {
  alreadyResponded,
  type Context,
  type Handler,
  type Handlers,
  type HttpServices,
  RawResponse,
} from './context.ts'
import { sendFailure, toFailure } from './errors.ts'
import { type IdempotentRequest, plainUrl, readIdempotencyKey, type StoredResponse } from './idempotency.ts'
import { InFlight } from './limits/in-flight.ts'
import { RateLimiter } from './limits/rate-limit.ts'
import { OperatorReads } from './operator-reads.ts'
import { chain, type MaybePromise } from './short-cache.ts'
import { wantsStream } from './streams/streams.ts'
import { compileValidators } from './validation.ts'
import { writerOf } from './writes.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Null for a path outside the route table. */
    routeId: RouteId | null
    grant: Grant | null
  }
}

/** Body limit for requests before sign-in. */
export const authBodyBytes = 8 * 1024

/** Includes the charset, so that Fastify does not have to add it. */
const jsonType = 'application/json; charset=utf-8'

type AnyHandler = Handler<RouteId>

/**
 * Mounts every route of the table. Access, checks, idempotency and audit are handled here for all of them.
 */
export function mountRoutes(
  app: FastifyInstance,
  services: HttpServices,
  limiter: RateLimiter,
  handlers: Handlers,
): void {
  const { access, database } = services
  const { limits } = services.config
  // An unknown bearer token needs a database query, so attempts to guess one have their own limit.
  const perSecond = limits.unknownBearersPerSecond
  const unknownBearers = new RateLimiter({ requestsPerSecond: perSecond, burst: 5 * perSecond })
  const inFlight = new InFlight(limits)
  const organizations = new RateLimiter({
    requestsPerSecond: limits.organizationRequestsPerSecond,
    burst: limits.organizationBurst,
  })
  app.decorateRequest('routeId', null)
  app.decorateRequest('grant', null)

  /** Applies the rate limits and authorizes the caller. Synchronous for cached callers. */
  function enter(route: Route, request: FastifyRequest, reply: FastifyReply): MaybePromise<void> {
    const params = lowerIds(request.params)
    if (route.noStore) reply.header('cache-control', 'no-store')
    if (route.access === 'public') return limiter.takeAddress(request.ip, reply)
    const bearer = bearerOf(request)
    const authorize = (caller: Caller) => {
      limiter.take(caller.key, reply)
      // The organization of a key is already known. For a user, the path determines which organization's limits the
      // request counts towards.
      const isUser = caller.kind === 'user'
      if (!isUser) organizations.takeOrganization(ownerOf(caller, null), reply)
      return chain(access.authorize(route, caller, params), (grant) => {
        if (isUser) organizations.takeOrganization(ownerOf(caller, grant.organizationId), reply)
        request.grant = grant
      })
    }
    const cached = access.findCached(bearer, request.ip)
    if (cached) return authorize(cached)
    if (bearer && !access.wasRecentlyValid(bearer)) unknownBearers.takeAddress(request.ip, reply)
    const refuse = (error: unknown) => {
      limiter.takeAddress(request.ip, reply)
      throw error
    }
    return access.authenticate(bearer, request.ip).catch(refuse).then(authorize)
  }

  for (const id of routeIds) {
    const route = mountedRoute(id, services)
    const validators = compileValidators(route)
    const handler = handlers[id] as unknown as AnyHandler
    const write = route.isTransactional ? writerOf(id, route, handler, services) : undefined
    const read = route.recordsTenants ? withTenantRecord(handler, route) : handler
    app.route({
      method: route.method,
      url: route.path.replace(/\{(\w+)\}/g, ':$1'),
      ...(route.path.startsWith('/v0.1/auth/') && { bodyLimit: authBodyBytes }),
      // Runs before the body is read, so that 401, 404, 403 and 402 come before 400.
      onRequest: (request, reply, done) => {
        request.routeId = id
        const entered = enter(route, request, reply)
        if (entered instanceof Promise) entered.then(() => done(), done)
        else done()
      },
      // The caller may have lost access while the body was being received.
      ...(route.method !== 'GET' && {
        preHandler: async (request: FastifyRequest) => {
          if (request.grant && request.body !== undefined) await checkAgain(access, route, request)
        },
      }),
      handler: (request, reply) => {
        validators.params(request.params as Record<string, string>)
        validators.query(request.query as Record<string, unknown>)
        request.body = validators.body(request.body)
        const { grant } = request
        const owner = grant ? ownerOf(grant.caller, grant.organizationId) : publicOwner
        const contextIn = (tx: Tx) => new RequestContext(id, services, tx, request, reply)
        const run = () =>
          write
            ? write({ contextIn, owner, once: idempotentRequestOf(route, request) }).then((response) =>
                sendWritten(response, reply),
              )
            : read(contextIn(database.forOwner(owner))).then((result) => send(result, reply))
        const fail = (error: unknown) => sendFailure(toFailure(error), request, reply)
        if (grant && !isHeld(route, request)) inFlight.run(owner, run).catch(fail)
        else run().catch(fail)
      },
    })
  }
}

/** Returns whether the response may stay open for a long time: a request with `wait`, or an event stream. */
function isHeld({ alsoReturns }: Route, { query, headers }: FastifyRequest): boolean {
  if (alsoReturns === 'text/event-stream') return wantsStream(headers.accept)
  return Boolean((query as { wait?: number }).wait)
}

/** Returns the route, with the access that the operator configured: the catalogue can require a credential. */
function mountedRoute(id: RouteId, { config }: HttpServices): Route {
  const isClosed = id === 'catalogueList' && !config.server.publicCatalogue
  return isClosed ? { ...routeOf(id), access: 'caller' } : routeOf(id)
}

async function checkAgain(access: Access, route: Route, request: FastifyRequest): Promise<void> {
  request.grant = await access.grant(route, request)
}

/** Wraps a handler: records which tenants an operator's response shows, before it is sent. Streams do that themselves. */
const withTenantRecord =
  (handle: AnyHandler, { tenantIn }: Route): AnyHandler =>
  async (context) => {
    const result = await handle(context)
    if (result === alreadyResponded) return result
    const { services, by, routeId, query, params } = context
    const given = { ...query, ...params } as Record<string, unknown>
    const named = tenantIn && { [tenantIn]: given[tenantIn] }
    const shown = result instanceof JsonText ? JSON.parse(String(result.body)) : result
    await new OperatorReads(services.database, by, routeId).record([named, shown])
    return result
  }

function idempotentRequestOf({ method }: Route, request: FastifyRequest): IdempotentRequest | undefined {
  const key = readIdempotencyKey(request.headers['idempotency-key'])
  if (key === undefined) return undefined
  return { key, caller: request.grant!.caller.key, method, path: plainUrl(request.url), body: request.body }
}

/** Ids are accepted in any letter case. The database has them in lower case. */
function lowerIds(given: unknown): Record<string, string> {
  const params = given as Record<string, string>
  for (const name in params) {
    const value = params[name]!
    const lower = value.toLowerCase()
    if (lower !== value && isUuid(value)) params[name] = lower
  }
  return params
}

function send(result: Awaited<ReturnType<AnyHandler>>, reply: FastifyReply): void {
  if (result === alreadyResponded) return
  if (result instanceof RawResponse) reply.type(result.contentType).send(result.content)
  else reply.type(jsonType).send(result instanceof JsonText ? result.body : JSON.stringify(result))
}

function sendWritten({ text, isReplay }: StoredResponse, reply: FastifyReply): void {
  if (isReplay) reply.header('idempotency-replayed', 'true')
  reply.type(jsonType).send(text)
}

/** Created per request: keep it small. Values that only a few handlers need are getters. */
class RequestContext implements Context {
  readonly routeId: RouteId
  readonly services: HttpServices
  readonly tx: Tx
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly caller: Context['caller']
  readonly params: Context['params']
  readonly query: Context['query']
  readonly body: Context['body']

  constructor(
    routeId: RouteId,
    services: HttpServices,
    tx: Tx,
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    this.routeId = routeId
    this.services = services
    this.tx = tx
    this.request = request
    this.reply = reply
    this.caller = request.grant?.caller ?? null
    this.params = request.params as Context['params']
    this.query = request.query as Context['query']
    this.body = request.body as Context['body']
  }

  get project() {
    const project = this.request.grant?.project
    if (!project) throw new Error('this route has no project')
    return project
  }

  get organizationId() {
    const organizationId = this.request.grant?.organizationId
    if (!organizationId) throw new Error('this route has no organization')
    return organizationId
  }

  get by(): Context['by'] {
    const { grant } = this.request
    const requester: Requester = {
      actor: this.caller?.key ?? '',
      requestId: this.request.id,
      clientAddress: this.request.ip,
      projectId: grant?.project?.projectId ?? null,
      organizationId: grant?.organizationId ?? null,
    }
    // For a path with a project or an organization, the grant has its id.
    return requester as Context['by']
  }

  get pageBytes() {
    return this.services.config.limits.pageBytes
  }

  get requestId() {
    return this.request.id
  }

  get address() {
    return this.request.ip
  }

  get userAgent() {
    return this.request.headers['user-agent'] ?? ''
  }

  requireStillAllowed() {
    return checkAgain(this.services.access, routeOf(this.routeId), this.request)
  }

  requirePayment() {
    const project = this.request.grant?.project
    if (project && project.paymentState !== 'active') throw paymentRequired(project)
  }
}
