import { type ErrorCode, errorStatus } from '@slipway/contract'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../domain/failure.ts'
import {
  isDatabaseUnavailable,
  isRetryable,
  sqlState,
  UnknownOutcome,
  unavailableReason,
} from '../postgres/database.ts'

/** Turns any error into the failure that the client sees, without internal details. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof UnknownOutcome)
    return new Failure(
      'unavailable',
      'The connection to the database was lost during the commit, so it is unknown whether the request took effect. Send it again with the same Idempotency-Key; if it had none, first check whether it took effect.',
      { details: { outcome: 'unknown' }, cause: error },
    )
  if (isDatabaseUnavailable(error))
    return new Failure('unavailable', `${unavailableReason(error)} Try again.`, { cause: error })
  if (isRetryable(error))
    return new Failure('unavailable', 'Conflict with a concurrent request. Try again.', { cause: error })
  // Class 22 is a value that PostgreSQL cannot convert, such as one from a forged page token.
  if (sqlState(error)?.startsWith('22'))
    return new Failure('invalid_argument', 'The request contains an invalid value.', { cause: error })
  return (
    fromFastify(error as Partial<FastifyError>) ??
    new Failure('internal_error', 'Internal error. It is safe to try again.', { cause: error })
  )
}

const fastifyFailures: Record<string, [ErrorCode, string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['request_too_large', 'The body is larger than the limit.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'Send the body as application/json.'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['invalid_argument', 'The body does not match its Content-Length.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid_argument', 'The body does not match its Content-Length.'],
}

function fromFastify(error: Partial<FastifyError>): Failure | undefined {
  const known = fastifyFailures[error.code ?? '']
  if (known) return new Failure(...known)
  if (typeof error.statusCode === 'number' && error.statusCode >= 400 && error.statusCode < 500)
    return new Failure('invalid_argument', 'The request is malformed.', { cause: error })
  return undefined
}

export function sendFailure(failure: Failure, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const code: ErrorCode = failure.code in errorStatus ? (failure.code as ErrorCode) : 'internal_error'
  const status = errorStatus[code]
  if (status >= 500)
    request.log.error({ request: request.id, err: failure.cause ?? failure }, 'request failed')
  if (code === 'unauthenticated') reply.header('WWW-Authenticate', 'Bearer')
  const retryAfter = failure.retryAfterSeconds ?? (code === 'unavailable' ? 1 : undefined)
  if (retryAfter !== undefined) reply.header('Retry-After', String(retryAfter))
  return reply
    .code(status)
    .type('application/json')
    .send({
      code,
      message: failure.message,
      request_id: request.id,
      ...(failure.details && { details: failure.details }),
      ...failure.extra,
    })
}
