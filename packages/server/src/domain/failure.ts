import type { FailureCode } from '@slipway/contract'

export interface FieldProblem {
  field: string
  message: string
}

/** Marks an error after which it is unknown whether the request took effect. */
export interface UnknownEffect {
  outcome: 'unknown'
}

/** Identifies the operation that must end before the request can succeed. */
export interface BlockingOperation {
  operation_id: string
}

/** An expected error. `message` tells the caller what to do; `cause` is only logged. */
export class Failure extends Error {
  readonly code: FailureCode
  readonly details: FieldProblem[] | UnknownEffect | BlockingOperation | undefined
  /** Additional fields of responses with this error code, such as `available_locations`. */
  readonly extra: Record<string, unknown>
  readonly retryAfterSeconds: number | undefined

  constructor(
    code: FailureCode,
    message: string,
    more: {
      details?: FieldProblem[] | UnknownEffect | BlockingOperation | undefined
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

/** Returns the 400 error for a field of the body that is well-formed but not acceptable. */
export function invalidField(field: string, message: string): Failure {
  return new Failure('invalid_argument', `${field}: ${message}`, {
    details: [{ field: `/${field}`, message }],
  })
}

/**
 * Converts the failure of a body that is nested in another body: adds the name of the outer body's field to the
 * beginning of its field paths.
 */
export function nestFailure(outerField: string, failure: unknown): unknown {
  if (!(failure instanceof Failure) || !Array.isArray(failure.details)) return failure
  const details = failure.details.map(({ field, message }) => ({ field: `/${outerField}${field}`, message }))
  return new Failure(failure.code, failure.message, { details, extra: failure.extra })
}

export const nameTaken = (what: string, name: string) =>
  new Failure('already_exists', `A ${what} named ${name} already exists. Choose another name.`)

/**
 * Returns the 409 error for a lack of capacity. `available_locations` lists where the request would succeed.
 */
export const outOfStock = (
  message: string,
  available_locations: string[] = [],
  more: { queue?: { length: number; likely_at: string } | undefined; fits?: number } = {},
) => new Failure('out_of_stock', message, { extra: { available_locations, ...more } })

export function notFound(what: string): Failure {
  return new Failure('not_found', `There is no ${what} with this id.`)
}

/** Returns the value; throws a 404 error if there is none. */
export function requireFound<T>(what: string, value: T | null | undefined): T {
  if (value === null || value === undefined) throw notFound(what)
  return value
}
