import Type, { type Static } from 'typebox'
import { record, Uuid } from './schema.ts'

/** Every error code that a response can contain, with its HTTP status. */
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

/** Additional codes that the result of a failed operation can contain. */
export const operationErrorCodes = ['boot_failed', 'engine_error', 'cancelled'] as const
export type FailureCode = ErrorCode | (typeof operationErrorCodes)[number]

export const errorMeaning: Record<ErrorCode, string> = {
  invalid_argument: 'The request is malformed, or it contains an invalid field, id, filter or page token.',
  invalid_grant: 'The e-mail, password, code or refresh token is wrong, already used or expired.',
  unauthenticated: 'The credential is missing, malformed, unknown, revoked or expired.',
  payment_method_required: 'The organization needs a valid payment method.',
  permission_denied: 'The caller can see the resource but is not allowed to do this.',
  quota_exceeded: 'The request exceeds a quota of the project or organization, or the budget.',
  suspended: 'The operator has suspended the organization.',
  totp_enrolment_required:
    'The organization requires two-factor authentication, and the user signed in without it.',
  not_found: 'The resource does not exist, or the caller has no access to it.',
  method_not_allowed: 'The path does not support this method; `Allow` lists the supported methods.',
  protected: 'Deletion protection is on. Turn it off first.',
  already_exists: 'The name is already in use.',
  conflict:
    'Another operation on the resource is in progress, or the resource is in the wrong state. If the request can succeed after an operation has ended, `details.operation_id` is the id of that operation.',
  out_of_stock: 'No host has room for this VM now, or no public address is free.',
  request_too_large: 'The body is larger than the limit.',
  unsupported_media_type: 'The body is not `application/json`.',
  idempotency_key_reused: 'The `Idempotency-Key` was already used with a different request.',
  rate_limited: 'Too many requests; `Retry-After` says when to try again.',
  internal_error: 'An error in the service. It is safe to retry with the same `Idempotency-Key`.',
  unavailable:
    'The database or an engine is temporarily unavailable. It is safe to retry with the same `Idempotency-Key`. If `details.outcome` is `unknown`, the request may have taken effect.',
}

export const ApiErrorBody = record(
  'Error',
  {
    code: Type.Enum(errorCodes),
    message: Type.String({ description: 'What is wrong and what to do about it.' }),
    request_id: Type.String(),
    details: Type.Optional(
      Type.Union([
        Type.Array(Type.Object({ field: Type.String(), message: Type.String() }), {
          description:
            'Errors in individual fields. `field` is a JSON pointer into the body, or the name of a parameter.',
        }),
        Type.Object(
          { outcome: Type.Literal('unknown') },
          {
            description:
              'With `unavailable`: it is unknown whether the request took effect. Send the request again with the same `Idempotency-Key`.',
          },
        ),
        Type.Object(
          { operation_id: Uuid },
          {
            description:
              'With `conflict`: the operation in progress that blocks the request. Wait until it has ended, then send the request again. A conflict without this field cannot be resolved by waiting.',
          },
        ),
      ]),
    ),
    available_locations: Type.Optional(
      Type.Array(Type.String(), {
        description: 'With `out_of_stock`: the locations where the VM, or the whole group, would fit.',
      }),
    ),
    fits: Type.Optional(
      Type.Integer({
        description: 'With `out_of_stock` for an instance group: how many members would fit in the location.',
      }),
    ),
    queue: Type.Optional(
      Type.Object(
        {
          length: Type.Integer(),
          likely_at: Type.String({
            description:
              'When a new capacity request for one VM of this type would probably be granted. The estimate is at most 60 seconds old. Empty if there is no estimate, and for a group.',
          }),
        },
        {
          description:
            'With `out_of_stock`: the queue for such GPUs. `POST …/capacity-requests` adds a request to this queue.',
        },
      ),
    ),
    error: Type.Optional(
      Type.String({ description: 'The OAuth error name; only token endpoints return it.' }),
    ),
    error_description: Type.Optional(Type.String()),
  },
  {
    description: 'The body of every error response.',
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
