import fastifyCookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../domain/failure.ts'
import type { Services } from '../services.ts'
import { isOwnOrigin } from './host-names.ts'
import { authBodyBytes } from './mount.ts'

const path = '/_console/session'

interface Credentials {
  email?: string
  password?: string
  totp_code?: string
  code?: string
  setup_code?: string
}

/**
 * Mounts the endpoints of the browser's session. The refresh token is in a cookie for this path that scripts
 * cannot read; the page gets only the access token. Requests go through the public token endpoints, so that
 * their checks, limits and errors apply.
 */
export function mountConsoleSession(app: FastifyInstance, services: Services): void {
  const post = (request: FastifyRequest, url: string, payload: object) =>
    app.inject({
      method: 'POST',
      url,
      payload,
      remoteAddress: request.ip,
      headers: { 'x-request-id': request.id, 'user-agent': request.headers['user-agent'] ?? '' },
    })

  app.register(async (scope) => {
    await scope.register(fastifyCookie)
    scope.addHook('onRequest', async (request) => requireOwnOrigin(request, services))

    scope.post(path, { bodyLimit: authBodyBytes }, async (request, reply) => {
      reply.header('Cache-Control', 'no-store')
      const credentials = (request.body ?? null) as Credentials | null
      const cookie = readCookie(request)
      if (!credentials && !cookie) throw new Failure('unauthenticated', 'No session. Sign in.')
      const [url, payload] = credentials
        ? signInRequestOf(credentials)
        : ['/v0.1/auth/token', { grant_type: 'refresh_token', refresh_token: cookie }]
      const response = await post(request, url, payload)
      if (response.statusCode === 200) {
        const { refresh_token, access_token, expires_in } = response.json()
        keepSession(services, request, reply, refresh_token)
        return reply.send({ access_token, expires_in })
      }
      if (!credentials && response.statusCode === 400) {
        setCookie(request, reply, '', 0)
        throw new Failure('unauthenticated', 'The session has ended. Sign in again.')
      }
      const retryAfter = response.headers['retry-after']
      if (retryAfter) reply.header('Retry-After', retryAfter)
      return reply.code(response.statusCode).type('application/json').send(response.payload)
    })

    scope.delete(path, async (request, reply) => {
      reply.header('Cache-Control', 'no-store')
      const cookie = readCookie(request)
      if (cookie) await post(request, '/v0.1/auth/revoke', { refresh_token: cookie })
      setCookie(request, reply, '', 0)
      return reply.send({})
    })
  })
}

/** Returns the endpoint and body that open a session: with a setup code, an invitation or a password. */
function signInRequestOf({ setup_code, ...rest }: Credentials): [string, object] {
  if (setup_code !== undefined) return ['/v0.1/auth/setup', { ...rest, code: setup_code }]
  if (rest.code !== undefined) return ['/v0.1/auth/accept', rest]
  return ['/v0.1/auth/token', { grant_type: 'password', ...rest }]
}

/** Stores the refresh token in the browser. Single sign-on uses this too. */
export function keepSession(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  refreshToken: string,
): void {
  const isSecure = services.publicUrl().startsWith('https:')
  setCookie(request, reply, refreshToken, services.config.signIn.sessionDays * 86_400, isSecure)
}

/** SameSite protects against other sites; this check also protects against other origins of the same site. */
function requireOwnOrigin(request: FastifyRequest, services: Services): void {
  if (!isOwnOrigin(request, services))
    throw new Failure('permission_denied', 'Only the console may call this endpoint.')
}

/** Cookies ignore the port, so two services on one host name need different cookie names. */
const cookieName = (request: FastifyRequest) => `slipway_session_${request.port ?? 'default'}`

const readCookie = (request: FastifyRequest): string => request.cookies[cookieName(request)] ?? ''

function setCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  value: string,
  maxAge: number,
  isSecure = false,
): void {
  const secure = isSecure || (request.headers.origin?.startsWith('https:') ?? false)
  reply.setCookie(cookieName(request), value, { path, maxAge, httpOnly: true, sameSite: 'strict', secure })
}
