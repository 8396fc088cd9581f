import { ApiError } from '@slipway/sdk'

export const exitCodes = {
  done: 0,
  error: 1,
  usage: 2,
  notFound: 3,
  conflict: 4,
  denied: 5,
  waitedTooLong: 124,
  interrupted: 130,
} as const

/** An error of the command line itself, told without a stack. */
export class CliError extends Error {
  readonly code: string
  readonly exitCode: number
  /** What to do about it, on lines of their own. */
  readonly hints: string[]

  constructor(code: string, message: string, exitCode: number, hints: string[] = []) {
    super(message)
    this.code = code
    this.exitCode = exitCode
    this.hints = hints
  }
}

export class UsageError extends CliError {
  constructor(message: string, hints: string[] = []) {
    super('usage', message, exitCodes.usage, hints)
  }
}

export class NotFound extends CliError {
  constructor(message: string, hints: string[] = []) {
    super('not_found', message, exitCodes.notFound, hints)
  }
}

/** Thrown when the person at the terminal left a question with Ctrl-C. */
export class Interrupted extends CliError {
  constructor() {
    super('interrupted', 'Cancelled.', exitCodes.interrupted)
  }
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode
  if (!(error instanceof ApiError)) return exitCodes.error
  switch (error.code) {
    case 'not_found':
      return exitCodes.notFound
    case 'already_exists':
    case 'conflict':
    case 'out_of_stock':
      return exitCodes.conflict
    case 'unauthenticated':
    case 'permission_denied':
    case 'payment_method_required':
    case 'quota_exceeded':
    case 'invalid_grant':
      return exitCodes.denied
    case 'timed_out':
      return error.operation ? exitCodes.waitedTooLong : exitCodes.error
    default:
      return exitCodes.error
  }
}

/** What a person can do about an answer of the service. */
export function hintsOf(error: unknown): string[] {
  if (error instanceof CliError) return error.hints
  if (!(error instanceof ApiError)) return []
  const fields = error.details.map(({ field, message }) => `${field}: ${message}`)
  switch (error.code) {
    case 'unauthenticated':
      return ['Log in with `slipway login`, or set SLIPWAY_ACCESS_KEY.']
    case 'payment_method_required':
      return ['Enter a payment method with `slipway billing`.']
    case 'quota_exceeded':
      return ['See `slipway quota list` and `slipway project budget`.']
    case 'out_of_stock':
      return error.availableLocations.length > 0
        ? [`It would fit in: ${error.availableLocations.join(', ')}`]
        : ['See `slipway offers` for what is available.']
    case 'connection_failed':
      return [
        'Is the address right? `slipway context list` shows it, SLIPWAY_API_URL or --api-url changes it.',
      ]
    case 'timed_out':
      return error.operation
        ? [`Wait on with \`slipway operation wait ${error.operation.operation_id}\`.`]
        : []
    default:
      return fields
  }
}

/** The shape of the API's own errors, so that scripts read one form. */
export function errorRecord(error: unknown): Record<string, unknown> {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof ApiError) {
    return {
      code: error.code,
      message,
      request_id: error.requestId,
      ...(error.details.length > 0 && { details: error.details }),
      ...(error.availableLocations.length > 0 && { available_locations: error.availableLocations }),
      ...(error.operation && { operation_id: error.operation.operation_id }),
    }
  }
  return { code: error instanceof CliError ? error.code : 'internal_error', message, request_id: '' }
}
