import { type ApiErrorCode, isApiError } from '@slipway/sdk'

/** What the user can do about an error, if the message does not say so. */
const advice: Partial<Record<ApiErrorCode, string>> = {
  not_found: 'It may have been deleted, or it is in another project.',
  permission_denied: 'Ask an owner of the organization for a higher role.',
  quota_exceeded: 'Delete unused resources, or ask the operator for a higher quota.',
  out_of_stock: 'Choose another location or a smaller type, or try again later.',
  payment_method_required: 'Ask an owner of the organization to add one, then try again.',
  rate_limited: 'Wait a moment, then try again.',
  internal_error: 'Try again. If it still fails, send the request ID to the operator.',
  unexpected_answer: 'A proxy may have responded, or the server may run a different version.',
}

/** The page repeats failed reads automatically. It never repeats a failed change. */
const adviceByCall: Record<'read' | 'change', Partial<Record<ApiErrorCode, string>>> = {
  read: {
    unavailable: 'The page retries automatically.',
    connection_failed: 'Check your connection. The page retries automatically.',
    timed_out: 'The page retries automatically.',
  },
  change: {
    unavailable: 'Try again in a moment.',
    connection_failed: 'The request may not have arrived. Check your connection, then try again.',
    timed_out: 'The request may still take effect. Before you try again, check whether it did.',
  },
}

/** Retrying the same request cannot succeed after these errors. */
const finalCodes: ApiErrorCode[] = [
  'invalid_argument',
  'unauthenticated',
  'payment_method_required',
  'permission_denied',
  'suspended',
  'totp_enrolment_required',
  'not_found',
  'protected',
  'already_exists',
]

export const isWorthRetrying = (error: Error): boolean =>
  isApiError(error) && !finalCodes.includes(error.code)

/** Replaces API messages that are written for programs. */
const rewording: Partial<Record<ApiErrorCode, string>> = {
  payment_method_required: 'The organization has no valid payment method.',
}

interface ErrorText {
  message: string
  advice: string
  requestId: string
}

/** Returns an error message for users, with advice. */
export function errorText(error: Error, call: 'read' | 'change'): ErrorText {
  if (!isApiError(error)) return { message: error.message, advice: 'Reload the page.', requestId: '' }
  const fields = error.details
    .map(({ field, message }) => `${field.replace(/^\//, '')} ${message}`)
    .join('; ')
  const isComplete = fields === '' || error.message.includes(error.details[0]?.message ?? '')
  return {
    message: rewording[error.code] ?? (isComplete ? error.message : `${error.message} (${fields})`),
    advice: advice[error.code] ?? adviceByCall[call][error.code] ?? '',
    requestId: error.requestId,
  }
}

export const needsPaymentMethod = (error: unknown): boolean =>
  isApiError(error) && error.code === 'payment_method_required'
