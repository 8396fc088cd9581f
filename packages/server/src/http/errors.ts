import { type ErrorCode, errorStatus } from '@slipway/contract'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../domain/failure.ts'
import { isDatabaseAway, isWorthAnotherTry, sqlState } from '../postgres/database.ts'

/** Turns whatever was thrown into what the client sees; nothing internal ever shows. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (isDatabaseAway(error))
    return new Failure('unavailable', 'The database is away for the moment: try again shortly.', {
      cause: error,
    })
  if (isWorthAnotherTry(error))
    return new Failure('unavailable', 'Others wanted the same at the same moment: try again.', {
      cause: error,
    })
  // Data that PostgreSQL cannot read as what it should be, such as a forged page token: the caller's, not ours.
  if (sqlState(error)?.startsWith('22'))
    return new Failure('invalid_argument', 'A value in the request is not acceptable.', { cause: error })
  return (
    fromFastify(error as Partial<FastifyError>) ??
    new Failure('internal_error', 'Something went wrong on our side: it is safe to try again.', {
      cause: error,
    })
  )
}

function fromFastify(error: Partial<FastifyError>): Failure | undefined {
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new Failure('request_too_large', 'The body is over the limit: send less at a time.')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new Failure('unsupported_media_type', 'Send the body as application/json.')
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new Failure('invalid_argument', 'The body does not match its Content-Length.')
  }
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
