import { ApiError } from '@slipway/sdk'
import { CliError, exitCodes } from './cli-error.ts'

/** Returns the exit code for an error of the service or the CLI. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode
  if (!(error instanceof ApiError)) return exitCodes.error
  switch (error.code) {
    case 'invalid_argument':
      return exitCodes.usage
    case 'not_found':
      return exitCodes.notFound
    case 'already_exists':
    case 'protected':
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

/** Returns hints about what the user can do, one per line. */
export function hintsOf(error: unknown): string[] {
  if (error instanceof CliError) return error.hints
  if (!(error instanceof ApiError)) return []
  switch (error.code) {
    case 'unauthenticated':
      return ['Log in with `slipway login`, or set SLIPWAY_ACCESS_KEY.']
    case 'invalid_grant':
      return error.needsTotp ? ['Use --totp with your two-factor code or a recovery code.'] : []
    case 'payment_method_required':
      return ['Add a payment method with `slipway billing`.']
    case 'quota_exceeded':
      return ['See `slipway quota list` and `slipway project budget`.']
    case 'out_of_stock':
      return error.availableLocations.length > 0
        ? [`Available in: ${error.availableLocations.join(', ')}`]
        : ['See `slipway offers` for what is available.']
    case 'conflict':
      return error.blockingOperationId
        ? [
            `Wait for that operation with \`slipway operation wait ${error.blockingOperationId}\`, then try again.`,
          ]
        : []
    case 'protected':
      return ['Remove the protection, for example with `slipway vm unprotect` or `slipway disk unprotect`.']
    case 'connection_failed':
      return [
        'Check the URL with `slipway context list`. To use another URL, set SLIPWAY_API_URL or --api-url.',
      ]
    case 'timed_out':
      return error.operation
        ? [`To continue waiting, run \`slipway operation wait ${error.operation.operation_id}\`.`]
        : []
    default:
      return []
  }
}

/** Returns an error in the format of API errors, so that scripts need to parse only one format. */
export function errorRecord(thrown: unknown): Record<string, unknown> {
  const error = thrown instanceof CliError && thrown.cause instanceof ApiError ? thrown.cause : thrown
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof ApiError) {
    return {
      code: error.code,
      message,
      request_id: error.requestId,
      ...(error.details.length > 0 && { details: error.details }),
      ...(error.isOutcomeUnknown && { details: { outcome: 'unknown' } }),
      ...(error.blockingOperationId && { details: { operation_id: error.blockingOperationId } }),
      ...(error.availableLocations.length > 0 && { available_locations: error.availableLocations }),
      ...(error.operation && { operation_id: error.operation.operation_id }),
    }
  }
  return { code: error instanceof CliError ? error.code : 'internal_error', message, request_id: '' }
}
