import { timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../domain/failure.ts'
import { hashSecret } from '../domain/secret.ts'
import type { Services } from '../services.ts'
import { listEngineStates } from '../store/fleet/locations.ts'
import type { Metrics } from './metrics.ts'
import type { RateLimiter } from './rate-limit.ts'

/** For load balancers and monitoring. Only /metrics needs a token, except from loopback. */
export function mountHealth(
  app: FastifyInstance,
  services: Services,
  metrics: Metrics,
  limiter: RateLimiter,
): void {
  const limited = {
    onRequest: async (request: FastifyRequest, reply: FastifyReply) => limiter.takeAddress(request.ip, reply),
  }
  app.get('/healthz', async () => ({ status: 'ok' }))

  // An engine that is unavailable affects its location, not the API.
  app.get('/readyz', limited, async () => {
    try {
      return { status: 'ready', engines: await listEngineStates(services.database) }
    } catch (cause) {
      throw new Failure('unavailable', 'The database is temporarily unavailable. Try again.', { cause })
    }
  })

  app.get('/metrics', limited, async (request, reply) => {
    const token = services.config.server.metricsToken
    const hasToken = token !== '' && isSame(`Bearer ${token}`, request.headers.authorization ?? '')
    if (!hasToken && !isLocal(request)) {
      const message =
        'Send the bearer token in the variable that [server] metrics_token_env names, or send the request from loopback without a forwarding header.'
      throw new Failure('unauthenticated', message)
    }
    return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics())
  })
}

/** A request with a forwarding header came through a proxy on this machine, possibly from another one. */
function isLocal({ raw, headers }: FastifyRequest): boolean {
  const peer = raw.socket.remoteAddress ?? ''
  const isLoopback = peer === '::1' || /^(::ffff:)?127\./.test(peer)
  return (
    isLoopback && !Object.keys(headers).some((name) => /^(forwarded|x-forwarded-|x-real-ip|via$)/.test(name))
  )
}

const isSame = (a: string, b: string) => timingSafeEqual(hashSecret(a), hashSecret(b))
