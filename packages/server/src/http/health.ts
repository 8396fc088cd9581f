import { timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Failure } from '../domain/failure.ts'
import { hashSecret } from '../domain/secret.ts'
import type { Services } from '../services.ts'
import { pingDatabase } from '../store/meta.ts'
import { sendFailure } from './errors.ts'
import type { Metrics } from './metrics.ts'

/** For load balancers and monitoring: none of these needs a token, but /metrics if the operator sets one. */
export function mountHealth(app: FastifyInstance, services: Services, metrics: Metrics): void {
  app.get('/healthz', async () => ({ status: 'ok' }))

  app.get('/readyz', async (request, reply) => {
    try {
      await pingDatabase(services.database)
      return { status: 'ready' }
    } catch (cause) {
      return sendFailure(
        new Failure('unavailable', 'The database does not answer.', { cause }),
        request,
        reply,
      )
    }
  })

  app.get('/metrics', async (request, reply) => {
    const token = services.config.server.metricsToken
    if (token && !isSame(`Bearer ${token}`, request.headers.authorization ?? ''))
      return sendFailure(new Failure('unauthenticated', 'Send the metrics token.'), request, reply)
    return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics())
  })
}

const isSame = (a: string, b: string) => timingSafeEqual(hashSecret(a), hashSecret(b))
