import fastifyCookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { beginOidc, finishOidc, type OidcFlow } from '../accounts/oidc-client.ts'
import { linkIdentity, signInByIdentity } from '../accounts/single-sign-on.ts'
import type { OidcConfig } from '../config/index.ts'
import { Failure } from '../domain/failure.ts'
import { openSecret, sealSecret } from '../domain/secret-key.ts'
import type { Services } from '../services.ts'
import { keepSession } from './console-session.ts'
import type { RateLimiter } from './limits/rate-limit.ts'

const path = '/v0.1/auth/oidc'
const cookieName = 'slipway_oidc'
const flowSeconds = 600

/** A sign-in in progress, encrypted in a cookie, so that only the browser that began it can finish it. */
interface PendingFlow extends OidcFlow {
  provider: string
  /** The user who links an identity; empty for a sign-in. */
  userId: string
  until: number
}

/** Mounts the two pages of single sign-on, which respond with redirects instead of JSON. */
export function mountOidc(app: FastifyInstance, services: Services, limiter: RateLimiter): void {
  app.register(async (scope) => {
    await scope.register(fastifyCookie)
    scope.addHook('onRequest', async (request, reply) => {
      reply.header('Cache-Control', 'no-store')
      limiter.takeAddress(request.ip, reply)
    })

    scope.get<{ Params: { provider: string } }>(`${path}/:provider`, async (request, reply) => {
      const url = await beginFlow(services, reply, request.params.provider, '')
      return reply.redirect(url)
    })

    scope.get<{ Params: { provider: string } }>(`${path}/:provider/callback`, async (request, reply) => {
      const provider = findProvider(services, request.params.provider)
      reply.header('Set-Cookie', flowCookie(services, '', 0))
      try {
        return reply.redirect(await finishFlow(services, request, reply, provider))
      } catch (error) {
        // The reason is only in the log, so that an attacker learns nothing.
        const isTaken = error instanceof Failure && error.code === 'already_exists'
        services.log.warn(
          { err: error, provider: provider.name, request: request.id },
          'single sign-on refused',
        )
        return reply.redirect(`/sign-in?sso=${isTaken ? 'taken' : 'refused'}`)
      }
    })
  })
}

/** Returns the URL of the provider, and sets the cookie for the callback. */
export async function beginFlow(
  services: Services,
  reply: FastifyReply,
  name: string,
  userId: string,
): Promise<string> {
  const provider = findProvider(services, name)
  const { url, flow } = await beginOidc(provider, redirectUri(services, provider)).catch((error) => {
    throw new Failure('unavailable', 'The single sign-on provider does not respond. Try again.', {
      cause: error,
    })
  })
  const pending: PendingFlow = { ...flow, provider: name, userId, until: Date.now() + flowSeconds * 1000 }
  const sealed = sealSecret(services.secretKey, JSON.stringify(pending)).toString('base64url')
  reply.header('Set-Cookie', flowCookie(services, sealed, flowSeconds))
  return url
}

/** Returns the path of the next page. */
async function finishFlow(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  provider: OidcConfig,
): Promise<string> {
  const pending = readPending(services, request.cookies[cookieName] ?? '')
  if (pending.provider !== provider.name || pending.until < Date.now())
    throw new Failure('invalid_grant', 'This sign-in began in another browser or too long ago.')
  const returned = new URL(redirectUri(services, provider))
  returned.search = new URL(request.url, returned).search
  const identity = await finishOidc(provider, returned, pending)
  const visitor = {
    requestId: request.id,
    address: request.ip,
    userAgent: request.headers['user-agent'] ?? '',
  }
  if (pending.userId) {
    await linkIdentity(services, visitor, provider, pending.userId, identity)
    return '/account'
  }
  const { refresh_token } = await signInByIdentity(services, visitor, provider, identity)
  keepSession(services, request, reply, refresh_token)
  return '/'
}

function readPending(services: Services, sealed: string): PendingFlow {
  try {
    return JSON.parse(openSecret(services.secretKey, Buffer.from(sealed, 'base64url')))
  } catch (cause) {
    throw new Failure('invalid_grant', 'This sign-in did not begin in this browser.', { cause })
  }
}

export function findProvider(services: Services, name: string): OidcConfig {
  const provider = services.config.oidc.find((each) => each.name === name)
  if (!provider) throw new Failure('not_found', `There is no single sign-on provider ${name}.`)
  return provider
}

const redirectUri = (services: Services, { name }: OidcConfig) =>
  `${services.publicUrl()}${path}/${name}/callback`

const flowCookie = (services: Services, value: string, maxAge: number) =>
  fastifyCookie.serialize(cookieName, value, {
    path,
    maxAge,
    httpOnly: true,
    // The provider's site redirects the browser here, and browsers do not send strict cookies with such a
    // request.
    sameSite: 'lax',
    secure: services.publicUrl().startsWith('https:'),
  })
