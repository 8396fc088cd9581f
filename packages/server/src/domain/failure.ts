import type { FailureCode } from '@slipway/contract'

export interface FieldProblem {
  field: string
  message: string
}

/**
 * The one expected kind of error. `message` is for the outside and says what to do; what went wrong inside is the
 * `cause`, for the log alone.
 */
export class Failure extends Error {
  readonly code: FailureCode
  readonly details: FieldProblem[] | undefined
  /** Members that this code adds to the answer, such as `available_locations`. */
  readonly extra: Record<string, unknown>
  readonly retryAfterSeconds: number | undefined

  constructor(
    code: FailureCode,
    message: string,
    more: {
      details?: FieldProblem[]
      extra?: Record<string, unknown>
      retryAfterSeconds?: number
      cause?: unknown
    } = {},
  ) {
    super(message, { cause: more.cause })
    this.name = 'Failure'
    this.code = code
    this.details = more.details
    this.extra = more.extra ?? {}
    this.retryAfterSeconds = more.retryAfterSeconds
  }
}

/** A field of the body that is well-formed but not acceptable. */
export function invalidField(field: string, message: string): Failure {
  return new Failure('invalid_argument', `${field}: ${message}`, {
    details: [{ field: `/${field}`, message }],
  })
}

/** What was said of a body, said of the body that has it as a member. */
export function asMember(member: string, failure: unknown): unknown {
  if (!(failure instanceof Failure) || !failure.details) return failure
  const details = failure.details.map(({ field, message }) => ({ field: `/${member}${field}`, message }))
  return new Failure(failure.code, failure.message, { details, extra: failure.extra })
}

export function notFound(what: string): Failure {
  return new Failure('not_found', `There is no ${what} with this id.`)
}
