import { type ErrorCode, errorMeaning, errorStatus } from '../errors.ts'
import type { Route } from '../route.ts'
import type { Json } from './schemas.ts'

const requestId = 'req-5f0c2d'

/** One message per code, as the service would put it. */
const sample: Record<ErrorCode, Json & { message: string }> = {
  invalid_argument: {
    message:
      'size must be a whole number followed by GiB or TiB, such as 100GiB or 2TiB; did you mean 500GiB?',
    details: [
      {
        field: '/size',
        message:
          'must be a whole number followed by GiB or TiB, such as 100GiB or 2TiB; did you mean 500GiB?',
      },
    ],
  },
  invalid_grant: {
    message: 'The e-mail or the password is wrong.',
    error: 'invalid_grant',
    error_description: 'The e-mail or the password is wrong.',
  },
  unauthenticated: { message: 'The access token has expired. Refresh it and try again.' },
  payment_method_required: {
    message:
      'The organization has no payment method. Open the link of GET /v0.1/organizations/{organization_id}/billing and add one.',
  },
  permission_denied: { message: 'A read-only key cannot change this. Use a key with the role write.' },
  quota_exceeded: { message: 'quota exceeded: a100_gpus allows 32, 32 are used, 1 more is asked for.' },
  suspended: {
    message: 'The organization is suspended: ask the operator of this service. Billing still works.',
  },
  totp_enrolment_required: {
    message: 'This organization demands a second factor: set one up, then sign in with it.',
  },
  not_found: { message: 'There is no VM with this id.' },
  method_not_allowed: { message: 'This path does not know the method. Allow lists those that it does.' },
  protected: {
    message: 'The VM train-7 is protected against deletion: set deletion_protection to false first.',
  },
  already_exists: { message: 'A VM with the name train-7 exists in this project. Choose another name.' },
  conflict: { message: 'The VM is STATE_STOPPING and a STOP is under way. Try again when it has ended.' },
  out_of_stock: {
    message: 'out of stock: no host in us-east1-a has room for a100.8x now.',
    available_locations: ['eu-north1-a'],
  },
  request_too_large: { message: 'The body is larger than 1 MiB.' },
  unsupported_media_type: { message: 'Send the body as application/json.' },
  idempotency_key_reused: {
    message: 'This Idempotency-Key was used with another request. Use a fresh one.',
  },
  rate_limited: { message: 'Too many requests. Wait for the seconds of Retry-After.' },
  internal_error: { message: 'Something failed on our side. Try again with the same Idempotency-Key.' },
  unavailable: { message: 'The service cannot reach its database. Try again in a moment.' },
}

export const isWrite = (route: Route) => route.method !== 'GET'
const isScoped = (route: Route) => !['public', 'caller', 'user'].includes(route.access)

/** Every code that a route can answer with, by status. */
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
        examples: Object.fromEntries(
          codes.map((code) => {
            const { message, ...more } = sample[code]
            return [code, { value: { code, message, request_id: requestId, ...more } }]
          }),
        ),
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
      'Names the request in logs and in support; the caller’s own value if it sent one of at most 128 visible ASCII characters.',
    schema: { type: 'string', minLength: 1, maxLength: 128, pattern: '^[!-~]+$' },
    example: requestId,
  },
  RateLimitLimit: countHeader('Requests that the caller may make in a burst.', 200),
  RateLimitRemaining: countHeader('Requests left now.', 187),
  RateLimitReset: countHeader('Seconds until the allowance is full again.', 1),
  RetryAfter: countHeader('Seconds to wait before trying again.', 1),
  WwwAuthenticate: textHeader('The scheme to authenticate with.', 'Bearer'),
  Allow: textHeader('The methods that the path knows.', 'GET, POST'),
  IdempotencyReplayed: textHeader('`true` when this is the remembered answer of an earlier request.', 'true'),
  CacheControl: textHeader('The answer holds a secret and is not to be stored.', 'no-store'),
}
