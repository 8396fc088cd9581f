import { createHash } from 'node:crypto'
import { type ErrorCode, errorStatus, type RouteId, routeOf } from '@slipway/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../../domain/failure.ts'
import { ownerOf } from '../access.ts'
import { parseJson } from '../body.ts'
import type { HttpServices } from '../context.ts'
import { toFailure } from '../errors.ts'
import type { RateLimiter } from '../limits/rate-limit.ts'
import { ReadQueue } from './read-queue.ts'
import { FamilyCall, type FamilyServices, requireId } from './request.ts'
import { catalogueRoutes } from './routes/catalogue.ts'
import { diskRoutes } from './routes/disks.ts'
import { captureRoutes } from './routes/images.ts'
import { instanceRoutes } from './routes/instances.ts'
import { networkingRoutes } from './routes/network.ts'
import { operationRoutes } from './routes/operations.ts'
import type { FamilyRoute } from './routes/route.ts'
import { vmRoutes } from './routes/vms.ts'
import { type Signer, SigningKeys } from './signing-keys.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller of a signed request. */
    signer: Signer | null
    /** SHA-256 of the body, in hexadecimal. */
    bodyDigest: string | null
  }
}

const versions = ['/v1alpha5', '/v1']

const routes: FamilyRoute[] = [
  ...catalogueRoutes,
  ...vmRoutes,
  ...instanceRoutes,
  ...diskRoutes,
  ...captureRoutes,
  ...networkingRoutes,
  ...operationRoutes,
]

/**
 * Mounts the compatible API, the API family that public clients of other GPU clouds use. Each signed request
 * becomes one or more requests by the same caller to Slipway's own API.
 */
export function mountFamily(app: FastifyInstance, base: HttpServices, limiter: RateLimiter): void {
  if (!base.config.server.familyApi) return
  const services: FamilyServices = { ...base, app, limiter }
  const keys = new SigningKeys(services, limiter)
  const reads = new ReadQueue()
  app.decorateRequest('signer', null)
  app.decorateRequest('bodyDigest', null)
  for (const prefix of versions)
    app.register(
      async (family) => {
        readBodies(family)
        family.setErrorHandler((error, request, reply) => sendFailure(toFailure(error), request, reply))
        family.setNotFoundHandler((request, reply) => {
          limiter.takeAddress(request.ip, reply)
          return sendFailure(new Failure('not_found', 'No such endpoint.'), request, reply)
        })
        for (const route of routes)
          family.route({
            method: route.method,
            url: route.path,
            // Runs before the body is read.
            onRequest: async (request, reply) => {
              requirePrivate(request)
              request.signer = await keys.verify(request, reply)
              // The request log shows the caller.
              request.grant = { caller: request.signer.caller, project: null, organizationId: null }
              const params = request.params as Record<string, string>
              for (const name in params) params[name] = requireId(name, params[name])
            },
            handler: async (request, reply) => {
              const call = new FamilyCall(services, request.signer!, request, reply)
              const body = route.unlimitedAs
                ? await readUnlimited(call, route.unlimitedAs, reads, route.respond)
                : await route.respond(call)
              return reply.type('application/json').send(JSON.stringify(body))
            },
          })
      },
      { prefix },
    )
}

/** Computes the digest of the raw body before parsing it. */
function readBodies(family: FastifyInstance): void {
  family.removeContentTypeParser('application/json')
  family.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, raw, done) => {
    try {
      request.bodyDigest = createHash('sha256').update(raw).digest('hex')
      const body = raw.length === 0 ? undefined : parseJson(raw as Buffer)
      if (body !== undefined && (typeof body !== 'object' || body === null || Array.isArray(body)))
        throw new Failure('invalid_argument', 'The body must be a JSON object.')
      done(null, body)
    } catch (error) {
      done(error as Error)
    }
  })
}

/** An eavesdropper could replay a signed request, so only TLS and loopback connections are accepted. */
function requirePrivate({ protocol, ip }: FastifyRequest): void {
  if (protocol === 'https' || /^(::1|(::ffff:)?127\..*)$/.test(ip)) return
  throw new Failure('permission_denied', 'This API is served over TLS only.')
}

async function readUnlimited(
  call: FamilyCall,
  id: RouteId,
  reads: ReadQueue,
  respond: FamilyRoute['respond'],
): Promise<unknown> {
  const { services, signer, params } = call
  const { caller, organizationId } = await services.access.authorize(routeOf(id), signer.caller, params)
  return reads.run(ownerOf(caller, organizationId), () => respond(call))
}

function sendFailure(failure: Failure, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const code: ErrorCode = failure.code in errorStatus ? (failure.code as ErrorCode) : 'internal_error'
  const status = errorStatus[code]
  if (status >= 500 && failure.cause)
    request.log.error({ request: request.id, err: failure.cause }, 'request failed')
  const retryAfter = failure.retryAfterSeconds ?? (code === 'unavailable' ? 1 : undefined)
  if (retryAfter !== undefined) reply.header('retry-after', String(retryAfter))
  const body = { code, message: failure.message, error_id: request.id }
  return reply.code(status).type('application/json').send(JSON.stringify(body))
}
