import { type Route, type RouteId, routeIds, routeOf } from '@slipway/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../domain/failure.ts'
import type { Tx } from '../store/database.ts'
import { emitEvent } from '../store/events.ts'
import { type Access, type Grant, paymentRequired } from './access.ts'
import {
  answered,
  type Context,
  callerKey,
  type Handler,
  type Handlers,
  RawAnswer,
  type Services,
} from './context.ts'
import { onceOnly, readIdempotencyKey } from './idempotency.ts'
import type { RateLimiter } from './rate-limit.ts'
import { compileValidators, type RouteValidators } from './validation.ts'

declare module 'fastify' {
  interface FastifyRequest {
    grant: Grant | null
  }
}

type AnyHandler = Handler<RouteId>

/** Puts every route of the table on the server. Access, checks, idempotency and audit happen here, once. */
export function mountRoutes(
  app: FastifyInstance,
  services: Services,
  access: Access,
  limiter: RateLimiter,
  handlers: Handlers<RouteId>,
): void {
  app.decorateRequest('grant', null)
  for (const id of routeIds) {
    const route = routeOf(id)
    const validators = compileValidators(route)
    const handle = handlers[id] as unknown as AnyHandler
    app.route({
      method: route.method,
      url: route.path.replace(/\{(\w+)\}/g, ':$1'),
      config: { routeId: id },
      // Before the body is read: 401, 404, 403 and 402 come before 400.
      onRequest: async (request, reply) => {
        if (route.noStore) reply.header('Cache-Control', 'no-store')
        if (route.access === 'public') return limiter.take(`address:${request.ip}`, reply)
        const caller = await access.authenticate(request.headers.authorization).catch((error) => {
          limiter.take(`address:${request.ip}`, reply)
          throw error
        })
        limiter.take(callerKey(caller), reply)
        request.grant = await access.authorize(route, caller, request.params as Record<string, string>)
      },
      handler: (request, reply) => answer(id, route, validators, handle, services, request, reply),
    })
  }
}

async function answer(
  id: RouteId,
  route: Route,
  validators: RouteValidators,
  handle: AnyHandler,
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  validators.params(request.params as Record<string, string>)
  validators.query(request.query as Record<string, unknown>)
  validators.body(request.body)
  const withTx = (tx: Tx) => makeContext(services, tx, request, reply)

  if (route.method === 'GET' || route.path.startsWith('/v0.1/auth/'))
    return send(await handle(withTx(services.database.withoutTransaction).context), reply)

  const key = readIdempotencyKey(request.headers['idempotency-key'])
  const { text, isReplay } = await services.database.transaction(async (tx) => {
    const { context, wasAudited } = withTx(tx)
    const work = async () => {
      const result = await handle(context)
      if (!wasAudited() && !quietWrites.has(id)) throw new Error(`${id} wrote no audit event`)
      return JSON.stringify(result)
    }
    if (key === undefined) return { text: await work(), isReplay: false }
    const caller = callerKey(request.grant!.caller)
    const path = request.url
    const once = await onceOnly(tx, { key, caller, method: route.method, path, body: request.body }, work)
    return { text: once.answer, isReplay: once.isReplay }
  })
  if (isReplay) reply.header('Idempotency-Replayed', 'true')
  return reply.type('application/json').send(text)
}

/** POSTs that only compute. */
const quietWrites = new Set<RouteId>(['estimateCreate', 'firewallRuleTest'])

function send(result: Awaited<ReturnType<AnyHandler>>, reply: FastifyReply) {
  if (result === answered) return reply
  if (result instanceof RawAnswer) return reply.type(result.contentType).send(result.content)
  return reply.type('application/json').send(JSON.stringify(result))
}

function makeContext(services: Services, tx: Tx, request: FastifyRequest, reply: FastifyReply) {
  const { grant } = request
  const actor = grant ? callerKey(grant.caller) : ''
  let audits = 0
  const context: Context = {
    services,
    caller: grant?.caller ?? null,
    params: request.params as Context['params'],
    query: request.query as Context['query'],
    body: request.body as Context['body'],
    get project() {
      if (!grant?.project) throw new Error('this route has no project')
      return grant.project
    },
    get organizationId() {
      if (!grant?.organizationId) throw new Error('this route has no organization')
      return grant.organizationId
    },
    tx,
    actor,
    requestId: request.id,
    address: request.ip,
    noteEvent() {
      audits++
      tx.afterCommit(() => services.signals.send('events'))
    },
    audit(event) {
      context.noteEvent()
      const scope = {
        projectId: grant?.project?.projectId ?? null,
        organizationId: grant?.organizationId ?? null,
      }
      return emitEvent(tx, { ...scope, ...event, actor, requestId: request.id })
    },
    requirePayment() {
      if (grant?.project && grant.project.paymentState !== 'active') throw paymentRequired(grant.project)
    },
    request,
    reply,
  }
  return { context, wasAudited: () => audits > 0 }
}

export function requireCaller(context: Context): NonNullable<Context['caller']> {
  if (!context.caller) throw new Failure('unauthenticated', 'This needs a credential.')
  return context.caller
}
