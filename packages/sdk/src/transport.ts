import { ApiError, errorOfResponse } from './errors.ts'

/**
 * A token, or a function that returns one. After a 401, the function is called again with the rejected token.
 */
export type TokenSource = string | ((rejected?: string) => string | Promise<string>)

export interface ClientOptions {
  /** The URL of the service, with or without a trailing slash: `https://slipway.example.com`. */
  baseUrl: string
  /** A project access key, an operator key, an access token, or a function that returns one. */
  token?: TokenSource | undefined
  /** Replaces `fetch`, for tests or proxies. */
  fetch?: typeof fetch | undefined
  /** Time limit for one attempt (default: 30 s). Long polls of `wait` have their own limit. */
  timeoutMs?: number | undefined
  /** How many times a request is retried if that is safe (default: 3). */
  retries?: number | undefined
  /** The first pause between attempts (default: 250 ms). It doubles after each attempt, with jitter. */
  retryPauseMs?: number | undefined
  /** Sent as `User-Agent` where the platform allows it. */
  userAgent?: string | undefined
  /** Called when a credential is permanently rejected; the call still throws. */
  onUnauthenticated?: ((error: ApiError) => void) | undefined
}

export interface CallOptions {
  signal?: AbortSignal | undefined
  /** Makes a write safe to retry from another process. By default, each call creates its own key. */
  idempotencyKey?: string | undefined
  /** Replaces the client's `timeoutMs` for this call. */
  timeoutMs?: number | undefined
}

export interface RequestParts extends CallOptions {
  method: string
  path: string
  /**
   * True for a call without an Idempotency-Key, such as a token request. It is retried only if the service
   * did not start processing it.
   */
  hasNoIdempotencyKey: boolean
  body?: unknown
  headers?: Record<string, string>
  /** The response body is a stream. The time limit applies only until it starts, the signal until it ends. */
  isStream?: boolean
}

/** Routes that work without a token. An invitation is accepted with a token or with a password. */
const isWithoutToken = ({ path, body }: RequestParts): boolean =>
  /^\/v0\.1\/auth\/(token|revoke|setup|reset|forgot|invitation|oidc)$/.test(path) ||
  (path === '/v0.1/auth/accept' && typeof body === 'object' && body !== null && 'password' in body)

const maxPauseMs = 60_000
const retriedCodes = new Set([
  'connection_failed',
  'timed_out',
  'rate_limited',
  'unavailable',
  'internal_error',
])

export interface Transport {
  /**
   * Sends a request, retries it if that is safe, and returns the result of `read` for a successful response.
   */
  send<T>(request: RequestParts, read: (response: Response) => Promise<T>): Promise<T>
}

export function createTransport(options: ClientOptions): Transport {
  const baseUrl = options.baseUrl.replace(/\/+$/, '').replace(/\/v0\.1$/, '')
  const retries = options.retries ?? 3
  // The wrapper is needed because `fetch` fails in browsers if it is not called on window.
  const doFetch: typeof fetch = options.fetch ?? ((input, init) => fetch(input, init))

  async function attempt<T>(
    request: RequestParts,
    read: (response: Response) => Promise<T>,
    idempotencyKey: string,
    token: string,
  ): Promise<T> {
    const headers: Record<string, string> = { accept: 'application/json', ...request.headers }
    if (token) headers.authorization = `Bearer ${token}`
    if (options.userAgent) headers['user-agent'] = options.userAgent
    if (idempotencyKey) headers['idempotency-key'] = idempotencyKey
    if (request.body !== undefined) headers['content-type'] = 'application/json'
    const timeoutMs = request.timeoutMs ?? options.timeoutMs ?? 30_000
    const limit = timeLimit(timeoutMs, request.signal)
    try {
      const response = await doFetch(baseUrl + request.path, {
        method: request.method,
        headers,
        signal: limit.signal,
        ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
      })
      if (!response.ok) throw await errorOfResponse(response)
      return await read(response)
    } catch (cause) {
      if (cause instanceof ApiError) throw cause
      request.signal?.throwIfAborted()
      throw limit.signal.aborted
        ? new ApiError({
            code: 'timed_out',
            message: `${baseUrl} did not respond within ${timeoutMs} ms.`,
            cause,
          })
        : new ApiError({
            code: 'connection_failed',
            message: `Cannot reach ${baseUrl}: ${reasonOf(cause)}`,
            cause,
          })
    } finally {
      limit.clearTimer()
      if (!request.isStream) limit.clearListener()
    }
  }

  async function send<T>(request: RequestParts, read: (response: Response) => Promise<T>): Promise<T> {
    const { hasNoIdempotencyKey } = request
    const isWrite = request.method !== 'GET'
    const idempotencyKey = isWrite && !hasNoIdempotencyKey ? (request.idempotencyKey ?? newKey()) : ''
    let token = isWithoutToken(request) ? '' : await currentToken(options.token)
    let hasNewToken = false
    for (let tries = 0; ; tries++) {
      try {
        return await attempt(request, read, idempotencyKey, token)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (error.code === 'unauthenticated') {
          const next = hasNewToken || !token ? token : await currentToken(options.token, token)
          hasNewToken = true
          if (next !== token) {
            token = next
            continue
          }
          options.onUnauthenticated?.(error)
        }
        if (tries >= retries || !mayRetry(error, hasNoIdempotencyKey)) throw error
        const pauseMs = error.retryAfterMs ?? backoffMs(options.retryPauseMs ?? 250, tries)
        if (pauseMs > maxPauseMs) throw error
        await pause(pauseMs, request.signal)
      }
    }
  }

  return { send }
}

/**
 * A 429 means that the service did not process the request, so a retry is always safe. A call without an
 * idempotency key is not retried in other cases. A conflict with `Retry-After` means that the first attempt
 * is still in progress.
 */
function mayRetry(error: ApiError, hasNoIdempotencyKey: boolean): boolean {
  if (error.code === 'rate_limited') return true
  if (hasNoIdempotencyKey) return false
  if (error.code === 'conflict') return error.retryAfterMs !== undefined
  return retriedCodes.has(error.code) || error.status === 502 || error.status === 504
}

const backoffMs = (firstMs: number, tries: number) => firstMs * 2 ** tries * (0.5 + Math.random())

async function currentToken(source: TokenSource | undefined, rejected?: string): Promise<string> {
  return typeof source === 'function' ? source(rejected) : (source ?? '')
}

function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** A signal that aborts with the caller's signal or after the time limit. */
function timeLimit(timeoutMs: number, signal: AbortSignal | undefined) {
  signal?.throwIfAborted()
  const controller = new AbortController()
  const stop = () => controller.abort(signal?.reason)
  const timer = setTimeout(() => controller.abort(), timeoutMs)
  signal?.addEventListener('abort', stop, { once: true })
  return {
    signal: controller.signal,
    clearTimer: () => clearTimeout(timer),
    clearListener: () => signal?.removeEventListener('abort', stop),
  }
}

export function pause(durationMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, durationMs)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

function reasonOf(cause: unknown): string {
  const inner = (cause as { cause?: { code?: string; message?: string } }).cause
  if (inner?.code === 'ECONNREFUSED') return 'connection refused.'
  if (inner?.code === 'ENOTFOUND') return 'unknown host name.'
  return inner?.message || inner?.code || (cause instanceof Error ? cause.message : String(cause))
}
