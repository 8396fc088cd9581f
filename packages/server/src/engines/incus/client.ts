import { setMaxListeners } from 'node:events'
import { Readable } from 'node:stream'
import { request } from 'undici'
import { EngineError } from '../engine.ts'
import type { Connection } from './connections.ts'
import { adviceOf, saysDuplicate } from './error-texts.ts'

/** An error from Incus: an HTTP status, or the code of a failed operation. */
export class IncusError extends Error {
  readonly code: number
  /** True if Incus accepted the request and its operation failed. The code is then the same for all reasons. */
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

/** Incus has several codes and wordings for an object that already exists. */
export const isDuplicate = (error: unknown): boolean => isCode(error, 409) || saysDuplicate(error)

/** Most Incus errors are temporary: a busy instance, a member that is down, a database without a leader. */
export function unavailable(error: unknown): Error {
  if (error instanceof EngineError || !(error instanceof Error)) return error as Error
  return new EngineError('unavailable', `Incus: ${error.message}`, { cause: error })
}

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
  /** The time limit for one request. */
  timeoutMs?: number
  /** The time limit for an operation that Incus runs in the background. */
  operationMs?: number
  /** Changes the object only if it still has this ETag, otherwise fails with 412. */
  ifMatch?: string
  query?: Record<string, string>
  headers?: Record<string, string>
}

/** A request body that is streamed; a second attempt calls `content` again. */
interface Upload {
  headers: Record<string, string>
  content: () => AsyncIterable<Buffer>
}

/** An object with its ETag, for conditional changes. */
interface Tagged<T> {
  value: T
  etag: string
}

interface RawResponse {
  status: number
  content: Buffer
  etag: string
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Well below the time that an inventory has for one batch of hosts. */
const readMs = 5_000
const requestMs = 15_000
/**
 * If a member has not responded to a request within this time, it is probed with a request that needs no
 * database.
 */
const probeAfterMs = 1_000
const probeMs = 2_000
/**
 * If a probe takes longer than this, the member finishes its current requests, but new requests go to another
 * member.
 */
const slowMs = 700
const nextProbeMs = 15_000
const waitS = 10
/** Incus may have to unpack a large image. */
const maxOperationMs = 1_800_000
/** These errors mean that the member did not receive the request, so it can be sent to another one. */
const notReceived = [
  'ECONNREFUSED',
  'ENOENT',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]

/**
 * The REST API of one Incus server or cluster. If a member does not respond, a read is sent to the next one.
 * A change is sent to the next member only if no member received it; otherwise it fails as `unavailable`, and
 * the caller can retry. A member that hangs is avoided after a few seconds, and requests that wait for it are
 * ended.
 */
export class IncusClient {
  readonly #connections: Connection[]
  readonly #project: string
  readonly #probes = new Map<Connection, Promise<number>>()
  /** The members that are avoided, and when each is probed next. */
  readonly #probeAtMs = new Map<Connection, number>()
  #current = 0

  constructor(connections: Connection[], project: string) {
    this.#connections = connections
    this.#project = project
  }

  get connection(): Connection {
    return this.#inOrder()[0]!
  }

  /** Tries this member last, until it responds to a probe quickly. */
  avoid(connection: Connection): void {
    this.#probeAtMs.set(connection, performance.now() + nextProbeMs)
  }

  /** Returns the members in the order in which they are tried: the current one first, those to avoid last. */
  #inOrder(): Connection[] {
    const { length } = this.#connections
    const rotated = this.#connections.map((_, index) => this.#connections[(this.#current + index) % length]!)
    for (const one of rotated)
      if ((this.#probeAtMs.get(one) ?? Number.POSITIVE_INFINITY) < performance.now()) void this.#recheck(one)
    const isAvoided = (one: Connection) => this.#probeAtMs.has(one)
    return [...rotated.filter((one) => !isAvoided(one)), ...rotated.filter(isAvoided)]
  }

  /** Stays with one member while it responds. If all members are avoided, uses the one that responded. */
  #prefer(connection: Connection): void {
    const isAvoided = (one: Connection) => this.#probeAtMs.has(one)
    if (!isAvoided(this.#connections[this.#current]!)) return
    if (!isAvoided(connection) || this.#connections.every(isAvoided))
      this.#current = this.#connections.indexOf(connection)
  }

  /**
   * Uses a member again if it responds to a probe quickly. A slow response to an ordinary request is not
   * enough.
   */
  async #recheck(connection: Connection): Promise<void> {
    this.avoid(connection)
    if ((await this.#probe(connection)) <= slowMs) this.#probeAtMs.delete(connection)
  }

  async get<T>(path: string, options: CallOptions): Promise<T> {
    return (await this.getTagged<T>(path, options)).value
  }

  async getTagged<T>(path: string, options: CallOptions): Promise<Tagged<T>> {
    const { response, etag } = await this.#send('GET', path, undefined, options).catch((error) => {
      // A member may be down, or the database may have no leader; a later read can succeed.
      throw error instanceof IncusError && error.code >= 500 ? unavailable(error) : error
    })
    return { value: response.metadata as T, etag }
  }

  /** Returns undefined if the object does not exist. */
  async find<T>(path: string, options: CallOptions): Promise<T | undefined> {
    return (await this.findTagged<T>(path, options))?.value
  }

  findTagged<T>(path: string, options: CallOptions): Promise<Tagged<T> | undefined> {
    return this.getTagged<T>(path, options).catch((error) => {
      if (isCode(error, 404)) return undefined
      throw error
    })
  }

  /** Returns when the change is done, even if Incus does it in the background. The body is JSON or an `Upload`. */
  async change(
    method: Exclude<Method, 'GET'>,
    path: string,
    body: unknown,
    options: CallOptions,
  ): Promise<void> {
    const { response } = await this.#send(method, path, body, options)
    if (response.type === 'async') await this.#wait(response.operation, options)
  }

  /** Returns when Incus has accepted the change, without waiting for it to finish. */
  async begin(method: 'PUT' | 'POST', path: string, body: unknown, options: CallOptions): Promise<void> {
    await this.#send(method, path, body, options)
  }

  /** Begins an operation that has WebSockets, and returns its path and the secret of each WebSocket. */
  async attach(
    path: string,
    body: unknown,
    options: CallOptions,
  ): Promise<{ operation: string; secrets: Record<string, string> }> {
    const { response } = await this.#send('POST', path, body, options)
    const { fds = {} } = (response.metadata as { metadata?: { fds?: Record<string, string> } }).metadata ?? {}
    return { operation: response.operation, secrets: fds }
  }

  /** Creates an object, unless another process has created it. */
  async create(path: string, body: unknown, options: CallOptions): Promise<void> {
    await this.change('POST', path, body, options).catch((error) => {
      if (!isDuplicate(error)) throw unavailable(error)
    })
  }

  /** Removes an object, if it exists. */
  async remove(path: string, options: CallOptions): Promise<void> {
    await this.change('DELETE', path, undefined, options).catch((error) => {
      if (!isCode(error, 404)) throw unavailable(error)
    })
  }

  /** Returns the body of a response that is not JSON. */
  async text(path: string, options: CallOptions): Promise<Buffer> {
    const { status, content } = await this.#exchange('GET', path, undefined, options)
    if (status >= 400) {
      const error = parse(content)?.error
      throw new EngineError(
        'unavailable',
        error ? `Incus: ${error}` : `Incus responded with status ${status}`,
      )
    }
    return content
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map(({ dispatcher }) => dispatcher.destroy()))
  }

  /**
   * Incus deletes a finished operation after a few seconds, so a request has to be waiting when it finishes.
   */
  async #wait(operation: string, options: CallOptions): Promise<void> {
    const path = `${operation.split('?')[0]}/wait`
    const { operationMs = maxOperationMs } = options
    const untilMs = performance.now() + operationMs
    do {
      const query = { timeout: String(waitS) }
      const limits = { signal: options.signal, query, timeoutMs: requestMs + waitS * 1_000 }
      const { response } = await this.#send('GET', path, undefined, limits)
      const result = response.metadata as OperationResult | null
      if (!result)
        throw new IncusError(response.error_code || 500, response.error || 'the operation has no result')
      if (result.status_code >= 400) throw new IncusError(result.status_code, result.err, true)
      if (result.status_code >= 200) return
    } while (performance.now() < untilMs)
    throw new EngineError('unavailable', `Incus did not finish ${operation} within ${operationMs / 1_000} s`)
  }

  async #send(
    method: Method,
    path: string,
    body: unknown,
    options: CallOptions,
  ): Promise<{ response: IncusResponse; etag: string }> {
    const { status, content, etag } = await this.#exchange(method, path, body, options)
    const response = parse(content)
    if (!response)
      throw new EngineError(
        'unavailable',
        `Incus responded to ${method} ${path} with status ${status}, but not with JSON`,
      )
    if (response.type === 'error') throw new IncusError(response.error_code || status, response.error)
    return { response, etag }
  }

  /**
   * Returns a signal that ends a request at its time limit, or earlier if its member does not respond to a
   * probe and there is another member. The timers are freed with the request, unlike those of
   * `AbortSignal.timeout`.
   */
  #limit(connection: Connection, until: AbortSignal, timeoutMs: number): Limit {
    const limit = new AbortController()
    const abort = () => limit.abort(until.reason)
    const timer = setTimeout(() => limit.abort(new Error(`timeout after ${timeoutMs / 1_000} s`)), timeoutMs)
    const check = async () => {
      const tookMs = await this.#probe(connection)
      if (tookMs > slowMs) this.avoid(connection)
      if (tookMs > probeMs) limit.abort(new Error(`${connection.origin} does not respond`))
    }
    const checks = this.#connections.length > 1 ? setInterval(check, probeAfterMs) : undefined
    // Many requests listen to this signal, so Node's warning about listener leaks is disabled.
    setMaxListeners(0, until)
    until.addEventListener('abort', abort)
    if (until.aborted) abort()
    const end = () => {
      clearTimeout(timer)
      clearInterval(checks)
      until.removeEventListener('abort', abort)
    }
    return { signal: limit.signal, end }
  }

  /**
   * Returns how long the member took to respond; infinite if it did not. Requests that wait for the same
   * member share a probe.
   */
  #probe(connection: Connection): Promise<number> {
    const known = this.#probes.get(connection)
    if (known) return known
    const startedMs = performance.now()
    const signal = AbortSignal.timeout(probeMs)
    const probe = exchange(connection, 'GET', '/', undefined, { signal })
      .then(
        () => performance.now() - startedMs,
        () => Number.POSITIVE_INFINITY,
      )
      .finally(() => this.#probes.delete(connection))
    this.#probes.set(connection, probe)
    return probe
  }

  async #exchange(method: Method, path: string, body: unknown, options: CallOptions): Promise<RawResponse> {
    const fullPath = `${path}?${new URLSearchParams({ project: this.#project, ...options.query })}`
    let failure: unknown
    for (const connection of this.#inOrder()) {
      const timeoutMs = options.timeoutMs ?? (method === 'GET' ? readMs : requestMs)
      const limit = this.#limit(connection, options.signal, timeoutMs)
      const { signal } = limit
      try {
        const response = await exchange(connection, method, fullPath, body, { ...options, signal })
        this.#prefer(connection)
        return response
      } catch (error) {
        options.signal.throwIfAborted()
        failure = error
        const isReceived = !notReceived.includes((error as NodeJS.ErrnoException).code ?? '')
        // A member that received the request may be slow only because it waits for another member.
        if (!isReceived) this.avoid(connection)
        if (method !== 'GET' && isReceived) break
      } finally {
        limit.end()
      }
    }
    const { message } = failure as Error
    const advice = adviceOf(failure)
    throw new EngineError(
      'unavailable',
      `Incus does not respond to ${method} ${path}: ${message}${advice && ` (${advice})`}`,
      { cause: failure },
    )
  }
}

interface Limit {
  signal: AbortSignal
  end: () => void
}

async function exchange(
  { origin, dispatcher }: Connection,
  method: Method,
  path: string,
  body: unknown,
  { signal, ifMatch, headers }: CallOptions,
): Promise<RawResponse> {
  const response = await request(`${origin}${path}`, {
    dispatcher,
    method,
    signal,
    headers: { ...headers, ...(ifMatch && { 'if-match': ifMatch }), ...(isUpload(body) && body.headers) },
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
