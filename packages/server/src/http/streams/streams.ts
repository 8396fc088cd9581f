import { type RouteId, type RouteQuery, routeOf } from '@slipway/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../../domain/failure.ts'
import { groupBy } from '../../domain/lists.ts'
import { type Database, isDatabaseUnavailable } from '../../postgres/database.ts'
import type { Signals } from '../../postgres/signals.ts'
import { CoalescedTask } from '../../runner/coalesced.ts'
import {
  type EventRow,
  type EventScope,
  findEventBounds,
  listEventsBetween,
  type Requester,
  stampEvents,
} from '../../store/events/events.ts'
import type { Caller } from '../../store/identity/access.ts'
import { type Access, type Bearer, type Grant, holderOf, readBearer, showsClientAddress } from '../access.ts'
import { OperatorReads } from '../operator-reads.ts'
import { HeldResponses, type Holder } from './held-responses.ts'
import { EventStream, frameOf, type StreamFilter } from './stream.ts'

const pastBatch = 500
/** Small, so that the event loop can send one batch before the next is read. */
const liveBatch = 100
/** How long a client that reads past events may take to receive one. */
const drainMs = 30_000
/** Signals can be lost, so the table is also read at this interval. */
const pollMs = 1_000
/** Credentials are checked after every revocation; this interval covers a lost signal. */
const recheckMs = 5_000
/** Comments are sent at this interval, because proxies close silent connections. */
const commentMs = 15_000

const everything: EventScope = { projectId: null, organizationId: null }

interface StreamRequest {
  query: NonNullable<RouteQuery<'eventList'>>
  request: FastifyRequest
  reply: FastifyReply
  caller: Caller | null
  by: Requester
  routeId: RouteId
}

interface Reader {
  stream: EventStream
  bearer: Bearer | undefined
  address: string
  routeId: RouteId
  params: Record<string, string>
  expiresAt: number
  checkedAt: number
}

/**
 * The event streams of this process. One shared reader follows the table and writes each new event to the
 * streams that match it, so additional streams need no additional queries. A stream that begins with past
 * events reads these itself, and joins the shared reader when it has caught up.
 */
export class EventStreams {
  readonly #database: Database
  readonly #access: Access
  readonly #readers = new Set<Reader>()
  readonly #held: HeldResponses
  readonly #distributing = new CoalescedTask(() => this.#distribute())
  readonly #timers: NodeJS.Timeout[]
  readonly #unsubscribe: (() => void)[]
  /** Position of the shared reader; undefined while there are no streams. */
  #tail: number | undefined

  constructor(database: Database, signals: Signals, access: Access, maxPerOrganization: number) {
    this.#database = database
    this.#held = new HeldResponses('event streams', maxPerOrganization)
    this.#access = access
    this.#unsubscribe = [
      signals.on('stamped', () => void this.#wake().catch(() => {})),
      signals.on('access', () => this.#recheck(0)),
    ]
    this.#timers = [setInterval(() => this.#poll(), pollMs), setInterval(() => this.#comment(), commentMs)]
    for (const timer of this.#timers) timer.unref()
  }

  get count(): number {
    return this.#readers.size
  }

  /** Takes over the reply. Throws 400 for a position that is pruned or does not exist yet. */
  async open(
    { query, reply, request, caller, by, routeId }: StreamRequest,
    filter: StreamFilter,
  ): Promise<void> {
    for (const name of ['page_token', 'after', 'start', 'end', 'q', 'operation_state'] as const)
      if (query[name] !== undefined)
        throw new Failure(
          'invalid_argument',
          `${name} applies only to lists. To resume a stream, send the Last-Event-ID header.`,
        )
    const wanted = readPosition(request.headers['last-event-id'])
    // A stream without a position begins after every event that was committed before the request.
    if (wanted === null) await stampEvents(this.#database, true)
    const { last, pruned } = await findEventBounds(this.#database)
    if (wanted !== null && wanted < pruned)
      throw new Failure(
        'invalid_argument',
        'Events after this Last-Event-ID were deleted after 90 days. List the remaining events, then stream without Last-Event-ID.',
      )
    if (wanted !== null && wanted > last)
      throw new Failure('invalid_argument', 'Last-Event-ID is beyond the newest event.')
    const release = this.#held.hold(holderOf(request))
    const reads = routeOf(routeId).recordsTenants ? new OperatorReads(this.#database, by, routeId) : null

    reply.hijack()
    const response = reply.raw
    response.writeHead(200, {
      ...(reply.getHeaders() as Record<string, string>),
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-cache, no-transform',
      // Tells nginx not to buffer the response.
      'X-Accel-Buffering': 'no',
    })
    if (request.method === 'HEAD') {
      release()
      response.end()
      return
    }
    const reader: Reader = {
      stream: new EventStream(response, filter, wanted ?? last, showsClientAddress(request.grant), reads),
      bearer: readBearer(request.headers),
      address: request.ip,
      routeId,
      params: request.params as Record<string, string>,
      expiresAt: caller?.expiresAt ?? Number.POSITIVE_INFINITY,
      checkedAt: performance.now(),
    }
    this.#readers.add(reader)
    const leave = () => {
      release()
      this.#forget(reader)
    }
    response.on('close', leave).on('error', leave)
    if (response.destroyed) leave()
    this.#tail ??= last
    // An id without data is not an event, but it tells a client that disconnects now where to continue.
    reader.stream.write(`id: ${wanted ?? last}\n\n`)
    this.#catchUp(reader.stream).catch(() => reader.stream.end())
    this.#wake().catch(() => {})
  }

  /** Counts a console session as a stream of its caller, until the returned function is called. */
  hold(holder: Holder): () => void {
    return this.#held.hold(holder)
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    for (const timer of this.#timers) clearInterval(timer)
    this.endAll()
  }

  endAll(): void {
    for (const { stream } of this.#readers) stream.end()
  }

  #forget(reader: Reader): void {
    this.#readers.delete(reader)
    if (this.#readers.size === 0) this.#tail = undefined
  }

  /**
   * Sends past events until the stream has caught up with the shared reader. No event can be distributed between the
   * comparison of the positions and setting `isLive`, because nothing is awaited in between.
   */
  async #catchUp(stream: EventStream): Promise<void> {
    while (stream.isOpen) {
      const upTo = this.#tail ?? stream.position
      if (stream.position >= upTo) {
        stream.isLive = true
        return
      }
      const range = { after: stream.position, upTo }
      const rows = await listEventsBetween(this.#database, stream.filter, range, pastBatch)
      const wanted = rows.filter((row) => stream.wants(row))
      await stream.reads?.record(wanted)
      for (const row of wanted) {
        stream.write(frameOf(row, stream.showsClient))
        await stream.drain(drainMs)
      }
      stream.position = rows.length < pastBatch ? upTo : rows.at(-1)!.position
    }
  }

  #wake(): Promise<void> {
    return this.#distributing.run().catch((error) => {
      if (!isDatabaseUnavailable(error)) throw error
    })
  }

  /** Returns whether there may be more events. */
  async #distribute(): Promise<boolean> {
    const after = this.#tail
    if (after === undefined) return false
    const upTo = Number.MAX_SAFE_INTEGER
    const rows = await listEventsBetween(this.#database, everything, { after, upTo }, liveBatch)
    await this.#recordReads(rows)
    // If the tail changed, the last stream was closed during the query, and a new stream may have been opened.
    if (this.#tail !== after || rows.length === 0) return this.#tail !== after
    const live = this.#liveStreams()
    // Grouped, so that an event costs nothing for streams of other projects.
    const byScope = groupBy(live, ({ filter }) => filter.projectId ?? filter.organizationId)
    for (const row of rows) {
      const scopes = new Set([row.project_id ?? row.organization_id, null])
      const listeners = [...scopes]
        .flatMap((scope) => byScope.get(scope) ?? [])
        .filter((stream) => stream.wants(row))
      // One text serves all streams with the same view.
      for (const [showsClient, streams] of groupBy(listeners, (stream) => stream.showsClient)) {
        const frame = frameOf(row, showsClient)
        for (const stream of streams) stream.write(frame)
      }
    }
    const tail = rows.at(-1)!.position
    for (const stream of live) stream.position = Math.max(stream.position, tail)
    this.#tail = tail
    return rows.length === liveBatch
  }

  #liveStreams(): EventStream[] {
    return [...this.#readers].map(({ stream }) => stream).filter(({ isLive }) => isLive)
  }

  /**
   * Records what operators are about to see. This is repeated, because another stream may become live in the
   * meantime.
   */
  async #recordReads(rows: EventRow[]): Promise<void> {
    const wantedBy = (stream: EventStream) => rows.filter((row) => stream.wants(row))
    for (;;) {
      const unrecorded = this.#liveStreams().filter((stream) => stream.reads?.isUnrecorded(wantedBy(stream)))
      if (unrecorded.length === 0) return
      await Promise.all(unrecorded.map((stream) => stream.reads?.record(wantedBy(stream))))
    }
  }

  #poll(): void {
    if (this.#readers.size === 0) return
    this.#wake().catch(() => {})
    for (const reader of this.#readers) if (reader.expiresAt <= Date.now()) reader.stream.end()
    this.#recheck(recheckMs)
  }

  /** Ends streams that their caller may no longer read. */
  #recheck(olderThanMs: number): void {
    const now = performance.now()
    // Many streams share few credentials, so each credential is checked once.
    const grants = new Map<string, Promise<Grant | null | undefined>>()
    for (const reader of this.#readers) {
      if (now - reader.checkedAt < olderThanMs) continue
      reader.checkedAt = now
      const key = JSON.stringify([reader.bearer?.digest, reader.address, reader.routeId, reader.params])
      const found = grants.get(key) ?? this.#findGrant(reader)
      grants.set(key, found)
      found.then((grant) => {
        if (grant === null) reader.stream.end()
        if (!grant) return
        reader.expiresAt = grant.caller.expiresAt
        reader.stream.showsClient = showsClientAddress(grant)
      })
    }
  }

  /** Returns null if the caller lost access, and undefined while the database is unavailable. */
  async #findGrant(reader: Reader): Promise<Grant | null | undefined> {
    try {
      const caller = await this.#access.authenticate(reader.bearer, reader.address)
      return await this.#access.authorize(routeOf(reader.routeId), caller, reader.params)
    } catch (error) {
      return error instanceof Failure ? null : undefined
    }
  }

  #comment(): void {
    for (const { stream } of this.#readers) stream.write(':\n\n')
  }
}

function readPosition(header: string | string[] | undefined): number | null {
  if (header === undefined || header === '') return null
  if (typeof header !== 'string' || !/^\d{1,15}$/.test(header))
    throw new Failure(
      'invalid_argument',
      'Last-Event-ID must be the id of an event, a number of at most 15 digits.',
    )
  return Number(header)
}

export const wantsStream = (accept: string | undefined): boolean =>
  (accept ?? '').toLowerCase().includes('text/event-stream')
