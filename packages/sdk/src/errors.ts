import type { ApiErrorBody, FailureCode, Operation } from '@slipway/contract'

/**
 * The service's error codes, and codes for failures without a usable response: `connection_failed` (the
 * connection failed or was lost), `offline` (the console did not send the request, because the browser is
 * offline), `timed_out` (the call or wait exceeded its time limit), `unexpected_answer` (the response is not
 * from this API, but from a proxy, another service or another version).
 */
export type ApiErrorCode = FailureCode | 'connection_failed' | 'offline' | 'timed_out' | 'unexpected_answer'

export interface ApiErrorParts {
  code: ApiErrorCode
  message: string
  status?: number
  requestId?: string
  details?: { field: string; message: string }[]
  isOutcomeUnknown?: boolean
  blockingOperationId?: string | undefined
  availableLocations?: string[]
  fits?: number | undefined
  queue?: ApiErrorBody['queue']
  needsTotp?: boolean
  retryAfterMs?: number | undefined
  operation?: Operation
  cause?: unknown
}

/**
 * The error that every failed call throws. Use `code` in programs; `message` is for people.
 *
 * @example
 * ```ts
 * try {
 *   await client.vmGet({ project_id, vm_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10' })
 * } catch (error) {
 *   if (error instanceof ApiError && error.code === 'not_found') log('no such VM')
 *   else throw error
 * }
 * ```
 */
export class ApiError extends Error {
  readonly code: ApiErrorCode
  /** The HTTP status; 0 if there was no response, or if an operation failed after it was accepted. */
  readonly status: number
  /** Include this id in support requests. Empty if there was no response. */
  readonly requestId: string
  /** Field errors of an `invalid_argument`. */
  readonly details: { field: string; message: string }[]
  /**
   * True if the request may have taken effect, because the service lost its database connection during the
   * commit. The client has already retried with the same idempotency key. If you passed your own
   * `idempotencyKey`, you can call again with it.
   */
  readonly isOutcomeUnknown: boolean
  /** With `conflict`: the operation in progress that must end before the call can succeed. */
  readonly blockingOperationId: string | undefined
  /** With `out_of_stock`: the locations where the VM would fit. */
  readonly availableLocations: string[]
  /** With `out_of_stock` for an instance group: how many members would fit. */
  readonly fits: number | undefined
  /** With `out_of_stock`: the queue that a capacity request would join. */
  readonly queue: ApiErrorBody['queue']
  /** True if the password is correct, but the two-factor code is missing. */
  readonly needsTotp: boolean
  /** How long the service asks the client to wait before a retry. */
  readonly retryAfterMs: number | undefined
  /** The operation that failed or did not end in time. */
  readonly operation: Operation | undefined

  constructor(parts: ApiErrorParts) {
    super(parts.message, parts.cause === undefined ? undefined : { cause: parts.cause })
    this.name = 'ApiError'
    this.code = parts.code
    this.status = parts.status ?? 0
    this.requestId = parts.requestId ?? ''
    this.details = parts.details ?? []
    this.isOutcomeUnknown = parts.isOutcomeUnknown ?? false
    this.blockingOperationId = parts.blockingOperationId
    this.availableLocations = parts.availableLocations ?? []
    this.fits = parts.fits
    this.queue = parts.queue
    this.needsTotp = parts.needsTotp ?? false
    this.retryAfterMs = parts.retryAfterMs
    this.operation = parts.operation
  }
}

export const isApiError = (error: unknown): error is ApiError => error instanceof ApiError

/** Reads an error response. A body in another format becomes `unexpected_answer`. */
export async function errorOfResponse(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '')
  const body = parseErrorBody(text)
  const status = response.status
  const requestId = body?.request_id ?? response.headers.get('x-request-id') ?? ''
  const retryAfterMs = readRetryAfter(response.headers.get('retry-after'))
  if (body === undefined) {
    const code = status === 429 ? 'rate_limited' : status === 503 ? 'unavailable' : 'unexpected_answer'
    return new ApiError({ code, status, requestId, retryAfterMs, message: foreignResponseText(response) })
  }
  return new ApiError({
    code: body.code,
    message: body.message,
    status,
    requestId,
    retryAfterMs,
    ...readDetails(body.details),
    needsTotp: body.error_description === 'totp_required',
    ...(body.available_locations && { availableLocations: body.available_locations }),
    fits: body.fits,
    queue: body.queue,
  })
}

function readDetails(details: ApiErrorBody['details']): Partial<ApiErrorParts> {
  if (details === undefined) return {}
  if (Array.isArray(details)) return { details }
  return 'operation_id' in details
    ? { blockingOperationId: details.operation_id }
    : { isOutcomeUnknown: details.outcome === 'unknown' }
}

export function errorOfOperation(operation: Operation): ApiError {
  const result = (operation.result ?? {}) as { code?: FailureCode; message?: string }
  return new ApiError({
    code: result.code ?? 'internal_error',
    message: result.message ?? 'The operation failed without an error message.',
    operation,
  })
}

function parseErrorBody(text: string): ApiErrorBody | undefined {
  try {
    const body = JSON.parse(text)
    return typeof body?.code === 'string' && typeof body?.message === 'string' ? body : undefined
  } catch {
    return undefined
  }
}

function foreignResponseText(response: Response): string {
  const status = `${response.status}${response.statusText ? ` ${response.statusText}` : ''}`
  return `${new URL(response.url || 'http://unknown').origin} returned ${status}, which is not a response of the Slipway API.`
}

function readRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined
  const seconds = Number(value)
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000)
  const instant = Date.parse(value)
  return Number.isNaN(instant) ? undefined : Math.max(0, instant - Date.now())
}
