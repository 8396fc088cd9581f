import type { Event } from '@slipway/contract'
import { callRoute, requestOf } from './call.ts'
import { ApiError } from './errors.ts'
import { pause, type Transport } from './transport.ts'

export interface EventStreamOptions {
  signal?: AbortSignal | undefined
  /** Start after this position. The default is to stream only new events. */
  after?: number | undefined
  resource_id?: string | undefined
  resource_type?: string | undefined
  type?: string | undefined
  actor?: string | undefined
  /** Called each time a connection is established. */
  onConnect?: (() => void) | undefined
  /** Called before each reconnection. */
  onReconnect?: ((error: unknown) => void) | undefined
}

/** The service sends a comment every 15 s, so a connection without data for this long is considered lost. */
const silenceLimitMs = 35_000

/**
 * Streams events. If the connection is lost, the stream resumes after the last event, so that no event is
 * missed or repeated. For the same reason, the starting position is read before the first connection.
 */
export async function* eventStream(
  transport: Transport,
  project_id: string,
  options: EventStreamOptions,
): AsyncGenerator<Event> {
  const { signal, resource_id, resource_type, type, actor, onConnect, onReconnect } = options
  const query = { resource_id, resource_type, type, actor }
  let position = options.after ?? (await latestPosition(transport, project_id, signal))
  let failures = 0
  const onPosition = (first: number) => {
    position ??= first
  }
  for (;;) {
    try {
      const request = { project_id, query, position, signal, onConnect, onPosition }
      for await (const event of connect(transport, request)) {
        failures = 0
        if (position !== undefined && event.position <= position) continue
        position = event.position
        yield event
      }
      failures += 1
      onReconnect?.(undefined)
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof ApiError && isFinal(error)) throw error
      failures += 1
      onReconnect?.(error)
    }
    await pause(Math.min(10_000, 200 * 2 ** failures) * (0.5 + Math.random()), signal)
  }
}

/** Returns whether the service or this client rejected the request, so that a retry would fail again. */
const isFinal = ({ code, status }: ApiError) => code === 'invalid_argument' || (status >= 400 && status < 500)

async function latestPosition(transport: Transport, project_id: string, signal: AbortSignal | undefined) {
  const page = await callRoute(transport, 'eventList', {
    params: { project_id },
    query: { limit: 20 },
    signal,
  })
  // Position 0 means that the event has no position yet.
  const positions = page.items.map((event) => event.position).filter((position) => position > 0)
  return positions.length > 0 ? Math.max(...positions) : undefined
}

interface StreamRequest {
  project_id: string
  query: Record<string, unknown>
  position: number | undefined
  signal: AbortSignal | undefined
  onConnect: (() => void) | undefined
  /**
   * Receives the position that the service sends at the start of the stream. In a project without events,
   * this is the only way to get a position.
   */
  onPosition: (position: number) => void
}

async function* connect(transport: Transport, wanted: StreamRequest): AsyncGenerator<Event> {
  const { project_id, query, position, signal } = wanted
  const silence = new AbortController()
  const stop = () => silence.abort(signal?.reason)
  signal?.addEventListener('abort', stop, { once: true })
  let timer: ReturnType<typeof setTimeout> | undefined
  const restartTimer = () => {
    clearTimeout(timer)
    timer = setTimeout(() => silence.abort(), silenceLimitMs)
  }
  try {
    const headers: Record<string, string> = { accept: 'text/event-stream' }
    if (position !== undefined) headers['last-event-id'] = String(position)
    const request = requestOf('eventList', { params: { project_id }, query, signal: silence.signal })
    const response = await transport.send({ ...request, headers, isStream: true }, async (result) => result)
    requireEventStream(response)
    restartTimer()
    wanted.onConnect?.()
    for await (const line of lines(response.body!)) {
      restartTimer()
      if (line.startsWith('id:')) wanted.onPosition(Number(line.slice(3)))
      if (line.startsWith('data:')) yield JSON.parse(line.slice(5)) as Event
    }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
    // Closes the connection when the consumer stops reading.
    silence.abort()
  }
}

function requireEventStream(response: Response): void {
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) return
  throw new ApiError({
    code: 'unexpected_answer',
    status: 406,
    message: 'This server does not stream events. Its version may be too old.',
  })
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    rest += decoder.decode(value, { stream: true })
    const parts = rest.split(/\r\n|\n|\r/)
    rest = parts.pop() ?? ''
    yield* parts
  }
}
