import { Readable } from 'node:stream'
import { type Dispatcher, request } from 'undici'
import { EngineError } from '../engine.ts'
import type { Endpoint } from './endpoints.ts'

/** What Incus says when it will not: an HTTP status, or the code of an operation that failed. */
export class IncusError extends Error {
  readonly code: number
  /** It was taken on and came to nothing, for whatever reason: Incus has one code for all of them. */
  readonly isOperation: boolean
  constructor(code: number, message: string, isOperation = false) {
    super(message)
    this.name = 'IncusError'
    this.code = code
    this.isOperation = isOperation
  }
}

export const isCode = (error: unknown, ...codes: number[]): error is IncusError =>
  error instanceof IncusError && codes.includes(error.code)

interface IncusResponse {
  type: 'sync' | 'async' | 'error'
  operation: string
  error_code: number
  error: string
  metadata: unknown
}

interface OperationResult {
  status_code: number
  err: string
}

export interface CallOptions {
  signal: AbortSignal
  /** Of one request; that of the caller ends it earlier. */
  timeoutMs?: number
  /** Of what Incus does in the background. */
  operationMs?: number
  /** Changes only what still has this ETag, else fails with 412. */
  ifMatch?: string
  query?: Record<string, string>
}

/** What is sent as it is, in pieces; a second attempt begins anew. */
export interface Upload {
  headers: Record<string, string>
  content: () => AsyncIterable<Buffer>
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const requestMs = 15_000
const waitS = 10
/** A large image may have to be unpacked. */
const longestOperationMs = 1_800_000
/** These say that nobody took the request: it may be sent to another member. */
const unheard = [
  'ECONNREFUSED',
  'ENOENT',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]

/**
 * The REST API of one Incus server or cluster. Reads go to the next member when one does not answer; a change does so
 * only if it was never heard, and otherwise fails as `unavailable`, for its caller to do again.
 */
export class IncusClient {
  readonly #endpoints: Endpoint[]
  readonly #project: string
  #current = 0

  constructor(endpoints: Endpoint[], project: string) {
    this.#endpoints = endpoints
    this.#project = project
  }

  get endpoint(): Endpoint {
    return this.#endpoints[this.#current]!
  }

  get endpointCount(): number {
    return this.#endpoints.length
  }

  /** The next member's turn: this one does not answer. */
  turnFrom(endpoint: Endpoint): void {
    if (this.endpoint === endpoint) this.#current = (this.#current + 1) % this.#endpoints.length
  }

  async get<T>(path: string, options: CallOptions): Promise<T> {
    return (await this.read<T>(path, options)).value
  }

  async read<T>(path: string, options: CallOptions): Promise<{ value: T; etag: string }> {
    const { answer, etag } = await this.#send('GET', path, undefined, options).catch((error) => {
      // A member that is away, or a database without a leader: another time it may be read.
      if (error instanceof IncusError && error.code >= 500)
        throw new EngineError('unavailable', `Incus: ${error.message}`, { cause: error })
      throw error
    })
    return { value: answer.metadata as T, etag }
  }

  /** Undefined where there is none. */
  async find<T>(path: string, options: CallOptions): Promise<{ value: T; etag: string } | undefined> {
    return this.read<T>(path, options).catch((error) => {
      if (isCode(error, 404)) return undefined
      throw error
    })
  }

  /** Returns when it is done, also where Incus does it in the background. */
  async change(
    method: Exclude<Method, 'GET'>,
    path: string,
    body: unknown,
    options: CallOptions,
  ): Promise<void> {
    const { answer } = await this.#send(method, path, body, options)
    if (answer.type === 'async') await this.#wait(answer.operation, options)
  }

  /** Returns when Incus has seen all of it. */
  upload(path: string, upload: Upload, options: CallOptions): Promise<void> {
    return this.change('POST', path, upload, options)
  }

  /** Returns when Incus has taken it on. */
  async begin(method: 'PUT' | 'POST', path: string, body: unknown, options: CallOptions): Promise<void> {
    await this.#send(method, path, body, options)
  }

  /** As it is, where Incus answers no JSON. */
  async text(path: string, options: CallOptions): Promise<Buffer> {
    const { status, content } = await this.#exchange('GET', path, undefined, options)
    if (status >= 400) throw new EngineError('unavailable', `Incus: ${parse(content)?.error ?? status}`)
    return content
  }

  async close(): Promise<void> {
    await Promise.all(this.#endpoints.map(({ dispatcher }) => dispatcher.destroy()))
  }

  /** A finished operation vanishes after some seconds, so somebody has to be waiting when it ends. */
  async #wait(operation: string, options: CallOptions): Promise<void> {
    const path = `${operation.split('?')[0]}/wait`
    const { operationMs = longestOperationMs } = options
    const untilMs = performance.now() + operationMs
    do {
      const query = { timeout: String(waitS) }
      const limits = { signal: options.signal, query, timeoutMs: requestMs + waitS * 1_000 }
      const { answer } = await this.#send('GET', path, undefined, limits)
      const result = answer.metadata as OperationResult | null
      if (!result)
        throw new IncusError(answer.error_code || 500, answer.error || 'the operation has no result')
      if (result.status_code >= 400) throw new IncusError(result.status_code, result.err, true)
      if (result.status_code >= 200) return
    } while (performance.now() < untilMs)
    throw new EngineError('unavailable', `Incus has not ended ${operation} in ${operationMs / 1_000} s`)
  }

  async #send(
    method: Method,
    path: string,
    body: unknown,
    options: CallOptions,
  ): Promise<{ answer: IncusResponse; etag: string }> {
    const { status, content, etag } = await this.#exchange(method, path, body, options)
    const answer = parse(content)
    if (!answer)
      throw new EngineError('unavailable', `Incus answered ${status} without JSON to ${method} ${path}`)
    if (answer.type === 'error') throw new IncusError(answer.error_code || status, answer.error)
    return { answer, etag }
  }

  async #exchange(
    method: Method,
    path: string,
    body: unknown,
    options: CallOptions,
  ): Promise<{ status: number; content: Buffer; etag: string }> {
    let failure: unknown
    for (let attempt = 0; attempt < this.#endpoints.length; attempt++) {
      const { endpoint } = this
      try {
        return await exchange(endpoint, method, this.#pathOf(path, options.query), body, options)
      } catch (error) {
        options.signal.throwIfAborted()
        failure = error
        this.turnFrom(endpoint)
        const isUnheard = unheard.includes((error as NodeJS.ErrnoException).code ?? '')
        if (method !== 'GET' && !isUnheard) break
      }
    }
    const { message } = failure as Error
    throw new EngineError('unavailable', `Incus does not answer ${method} ${path}: ${message}`, {
      cause: failure,
    })
  }

  #pathOf(path: string, query: Record<string, string> = {}): string {
    return `${path}?${new URLSearchParams({ project: this.#project, ...query })}`
  }
}

async function exchange(
  { origin, dispatcher }: Endpoint,
  method: Method,
  path: string,
  body: unknown,
  { signal, timeoutMs = requestMs, ifMatch }: CallOptions,
): Promise<{ status: number; content: Buffer; etag: string }> {
  const response: Dispatcher.ResponseData = await request(`${origin}${path}`, {
    dispatcher,
    method,
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    headers: { ...(ifMatch && { 'if-match': ifMatch }), ...(isUpload(body) && body.headers) },
    ...(body !== undefined && {
      body: isUpload(body) ? Readable.from(body.content()) : JSON.stringify(body),
    }),
  })
  const content = Buffer.from(await response.body.arrayBuffer())
  return { status: response.statusCode, content, etag: String(response.headers.etag ?? '') }
}

const isUpload = (body: unknown): body is Upload =>
  typeof body === 'object' && body !== null && 'content' in body && typeof body.content === 'function'

function parse(content: Buffer): IncusResponse | null {
  try {
    return JSON.parse(content.toString('utf8')) as IncusResponse
  } catch {
    return null
  }
}
