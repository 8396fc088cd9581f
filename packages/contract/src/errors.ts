import Type, { type Static } from 'typebox'
import { record } from './schema.ts'

/** Every error code that an answer can carry, with its HTTP status. */
export const errorStatus = {
  invalid_argument: 400,
  invalid_grant: 400,
  unauthenticated: 401,
  payment_method_required: 402,
  permission_denied: 403,
  quota_exceeded: 403,
  suspended: 403,
  totp_enrolment_required: 403,
  not_found: 404,
  method_not_allowed: 405,
  protected: 409,
  already_exists: 409,
  conflict: 409,
  out_of_stock: 409,
  request_too_large: 413,
  unsupported_media_type: 415,
  idempotency_key_reused: 422,
  rate_limited: 429,
  internal_error: 500,
  unavailable: 503,
} as const

export type ErrorCode = keyof typeof errorStatus
export const errorCodes = Object.keys(errorStatus) as ErrorCode[]

/** What a failed operation's result may say besides the codes above. */
export const operationErrorCodes = ['boot_failed', 'engine_error', 'cancelled'] as const
export type FailureCode = ErrorCode | (typeof operationErrorCodes)[number]

export const errorMeaning: Record<ErrorCode, string> = {
  invalid_argument: 'The request is malformed, or a field, id, filter or token in it is not acceptable.',
  invalid_grant: 'The e-mail, password, code or refresh token is wrong, used or expired.',
  unauthenticated: 'No credential, or one that is malformed, unknown, revoked or expired.',
  payment_method_required: 'The organization needs a working payment method first.',
  permission_denied: 'The caller may see this but not do it.',
  quota_exceeded: 'A quota of the project or organization, or the budget, does not cover the request.',
  suspended: 'The operator has suspended the organization.',
  totp_enrolment_required: 'The organization demands a second factor, which this session does not have.',
  not_found: 'No such thing, or it is not the caller’s.',
  method_not_allowed: 'The path exists but not with this method; `Allow` lists the methods.',
  protected: 'Deletion protection is on: take it off first.',
  already_exists: 'The name is taken.',
  conflict: 'Another operation is under way on the resource, or it is in the wrong state.',
  out_of_stock: 'No host or address can take this VM now.',
  request_too_large: 'The body is over the limit.',
  unsupported_media_type: 'The body is not `application/json`.',
  idempotency_key_reused: 'The `Idempotency-Key` was used with another request.',
  rate_limited: 'Too many requests; `Retry-After` says when to try again.',
  internal_error: 'A fault of the service; safe to retry with the same `Idempotency-Key`.',
  unavailable: 'The database or an engine is unavailable; safe to retry.',
}

export const ApiErrorBody = record(
  'Error',
  {
    code: Type.Enum(errorCodes),
    message: Type.String({ description: 'What is wrong and what to do about it.' }),
    request_id: Type.String(),
    details: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), message: Type.String() }), {
        description: 'Field errors; `field` is a JSON pointer into the body, or the parameter’s name.',
      }),
    ),
    available_locations: Type.Optional(
      Type.Array(Type.String(), { description: 'With `out_of_stock`: where the VM would fit.' }),
    ),
    error: Type.Optional(Type.String({ description: 'OAuth error name, at the token endpoints.' })),
    error_description: Type.Optional(Type.String()),
  },
  {
    description: 'The shape of every error answer.',
    examples: [
      {
        code: 'not_found',
        message: 'There is no VM with this id.',
        request_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10',
      },
    ],
  },
)
export type ApiErrorBody = Static<typeof ApiErrorBody>
