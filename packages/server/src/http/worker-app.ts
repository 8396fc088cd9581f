import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import { Failure } from '../domain/failure.ts'
import type { Services } from '../services.ts'
import { sendFailure, toFailure } from './errors.ts'
import { mountHealth } from './health.ts'
import { checkHostNames } from './host-names.ts'
import { RateLimiter } from './limits/rate-limit.ts'
import { Metrics } from './metrics/metrics.ts'

/** Health and metrics of a worker, for monitoring on its own machine. */
export function buildWorkerApp(services: Services, log: FastifyBaseLogger): FastifyInstance {
  const app = fastify({
    loggerInstance: log,
    exposeHeadRoutes: false,
    logController: new LogController({ disableRequestLogging: true }),
    forceCloseConnections: true,
  })
  app.setErrorHandler((error, request, reply) => sendFailure(toFailure(error), request, reply))
  app.setNotFoundHandler((request, reply) =>
    sendFailure(new Failure('not_found', 'No such endpoint.'), request, reply),
  )
  checkHostNames(app, services)
  const metrics = new Metrics(services)
  mountHealth(app, services, metrics, new RateLimiter(services.config.limits))
  return app
}
