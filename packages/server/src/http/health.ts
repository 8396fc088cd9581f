import { timingSafeEqual } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../domain/failure.ts'
import { hashSecret } from '../domain/secret.ts'
import { unavailableReason } from '../postgres/database.ts'
import { writeToDatabase } from '../postgres/ping.ts'
import type { Services } from '../services.ts'
import { listEngineStates } from '../store/fleet/locations.ts'
import type { RateLimiter } from './limits/rate-limit.ts'
import type { Metrics } from './metrics/metrics.ts'

/** The time limit of a readiness check, so that its response arrives within two seconds. */
const readyMs = 1_800

/** Mounts the endpoints for monitoring. Only /metrics needs a token, except from loopback. */
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

  // A process with an unavailable engine is still ready: the engine affects only its location, not the API.
  const findEngines = whileRunning(async () => {
    await writeToDatabase(services.database)
    return listEngineStates(services.database)
  })
  app.get('/readyz', limited, async () => {
    const late = new AbortController()
    try {
      const engines = await Promise.race([findEngines(), failAfter(readyMs, late.signal)])
      return { status: 'ready', engines }
    } catch (cause) {
      throw new Failure('unavailable', `${unavailableReason(cause)} Try again.`, { cause })
    } finally {
      late.abort()
    }
  })

  app.get('/metrics', limited, async (request, reply) => {
    const token = services.config.server.metricsToken
    const hasToken = token !== '' && isSame(`Bearer ${token}`, request.headers.authorization ?? '')
    if (!hasToken && !isLocal(request)) {
      const message =
        'Send the bearer token from the environment variable that [server] metrics_token_env names, or send the request from loopback without a forwarding header.'
      throw new Failure('unauthenticated', message)
    }
    return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics())
  })
}

/**
 * Calls that are made while `find` is running share its result, so that checks do not pile up while the
 * database does not respond.
 */
function whileRunning<T>(find: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => {
    running ??= find().finally(() => {
      running = undefined
    })
    return running
  }
}

async function failAfter(ms: number, signal: AbortSignal): Promise<never> {
  await delay(ms, undefined, { signal })
  throw new Error(`the database did not respond within ${ms} ms`)
}

/** A request with a forwarding header came through a proxy on this machine, possibly from another machine. */
function isLocal({ raw, headers }: FastifyRequest): boolean {
  const peer = raw.socket.remoteAddress ?? ''
  const isLoopback = peer === '::1' || /^(::ffff:)?127\./.test(peer)
  return (
    isLoopback && !Object.keys(headers).some((name) => /^(forwarded|x-forwarded-|x-real-ip|via$)/.test(name))
  )
}

const isSame = (a: string, b: string) => timingSafeEqual(hashSecret(a), hashSecret(b))
