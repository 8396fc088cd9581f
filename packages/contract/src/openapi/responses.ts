import { type ErrorCode, errorMeaning, errorStatus } from '../errors.ts'
import type { Route } from '../route.ts'
import { recording } from './recording.ts'
import type { Json } from './schemas.ts'

const requestId = 'req-5f0c2d'

export const isWrite = (route: Route) => route.method !== 'GET'
const isScoped = (route: Route) => !['public', 'caller', 'user'].includes(route.access)

/** Every error code that a route can return, by status. */
export function errorsByStatus(route: Route): Map<number, ErrorCode[]> {
  const codes = new Set<ErrorCode>(['invalid_argument', ...(route.errors ?? [])])
  if (route.access !== 'public') codes.add('unauthenticated')
  if (route.payment !== 'none') codes.add('payment_method_required')
  if (isScoped(route) || route.access === 'user') codes.add('permission_denied')
  if (isScoped(route)) codes.add('not_found')
  if (isScoped(route) && route.access !== 'operator') codes.add('totp_enrolment_required')
  if (isScoped(route) && route.access !== 'operator' && !route.worksSuspended) codes.add('suspended')
  codes.add('method_not_allowed')
  if (route.isTransactional) codes.add('conflict').add('idempotency_key_reused')
  if (isWrite(route)) codes.add('request_too_large').add('unsupported_media_type')
  codes.add('rate_limited').add('internal_error').add('unavailable')

  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of Object.keys(errorStatus) as ErrorCode[]) {
    if (!codes.has(code)) continue
    byStatus.set(errorStatus[code], [...(byStatus.get(errorStatus[code]) ?? []), code])
  }
  return byStatus
}

const pascal = (text: string) => text.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
export const responseName = (codes: ErrorCode[]) => codes.map(pascal).join('Or')

export const headerRef = (name: string) => ({ $ref: `#/components/headers/${name}` })
export const rateLimitHeaders = {
  'RateLimit-Limit': headerRef('RateLimitLimit'),
  'RateLimit-Remaining': headerRef('RateLimitRemaining'),
  'RateLimit-Reset': headerRef('RateLimitReset'),
}

export function errorResponse(codes: ErrorCode[]): Json {
  const has = (...wanted: ErrorCode[]) => wanted.some((code) => codes.includes(code))
  return {
    description: codes.map((code) => `\`${code}\`: ${errorMeaning[code]}`).join(' '),
    headers: {
      'X-Request-Id': headerRef('RequestId'),
      ...rateLimitHeaders,
      ...(has('unauthenticated') && { 'WWW-Authenticate': headerRef('WwwAuthenticate') }),
      ...(has('method_not_allowed') && { Allow: headerRef('Allow') }),
      ...(has('rate_limited', 'unavailable', 'conflict') && { 'Retry-After': headerRef('RetryAfter') }),
    },
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        examples: Object.fromEntries(codes.map((code) => [code, { value: recording.errors[code] }])),
      },
    },
  }
}

const textHeader = (description: string, example: string) => ({
  description,
  schema: { type: 'string' },
  example,
})
const countHeader = (description: string, example: number) => ({
  description,
  schema: { type: 'integer', minimum: 0 },
  example,
})

export const headers: Json = {
  RequestId: {
    description:
      'Identifies the request in logs and support requests. If the request has this header with at most 128 visible ASCII characters, the response has the same value.',
    schema: { type: 'string', minLength: 1, maxLength: 128, pattern: '^[!-~]+$' },
    example: requestId,
  },
  RateLimitLimit: countHeader('How many requests the caller can make in a burst.', 200),
  RateLimitRemaining: countHeader('How many requests the caller can make now.', 187),
  RateLimitReset: countHeader('Seconds until the full burst is available again.', 1),
  RetryAfter: countHeader('Seconds to wait before trying again.', 1),
  WwwAuthenticate: textHeader('The scheme to authenticate with.', 'Bearer'),
  Allow: textHeader('The methods that the path supports.', 'GET, POST'),
  IdempotencyReplayed: textHeader('`true` if this is the stored response of an earlier request.', 'true'),
  CacheControl: textHeader('The response contains a secret. Do not cache the response.', 'no-store'),
}
