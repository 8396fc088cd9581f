import { type RouteId, type RouteQuery, routeOf } from '@slipway/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../../domain/failure.ts'
import { groupBy } from '../../domain/lists.ts'
import { type Database, isDatabaseAway } from '../../postgres/database.ts'
import type { Signals } from '../../postgres/signals.ts'
import { CoalescedTask } from '../../runner/coalesced.ts'
import {
  type EventScope,
  findEventBounds,
  listEventsBetween,
  stampEvents,
} from '../../store/events/events.ts'
import type { Caller } from '../../store/identity/access.ts'
import { type Access, type Bearer, type Grant, readBearer, showsClientAddress } from '../access.ts'
import { HeldAnswers } from './held.ts'
import { EventStream, frameOf, type StreamFilter } from './stream.ts'

const pastBatch = 500
/** Small, so that readers get a turn to take one before they are given the next. */
const liveBatch = 100
/** A reader that catches up sets its own pace, within reason. */
const drainMs = 30_000
/** Hints can be lost: a look at the table without one. */
const lookMs = 1_000
/** Credentials are looked at when one was revoked anywhere; this is for a hint that got lost. */
const recheckMs = 5_000

const everything: EventScope = { projectId: null, organizationId: null }

/** A request that asks for a stream, after its checks. */
interface StreamRequest {
  query: NonNullable<RouteQuery<'eventList'>>
  request: FastifyRequest
  reply: FastifyReply
  caller: Caller | null
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
 * The event streams of this process. One shared reader follows the table and hands each new event to those who want
 * it, so that their number costs no queries. Who asks for the past reads it alone and joins when it has caught up.
 */
export class EventStreams {
  readonly #database: Database
  readonly #access: Access
  readonly #readers = new Set<Reader>()
  readonly #held = new HeldAnswers('event streams')
  readonly #handing = new CoalescedTask(() => this.#handOut())
  readonly #timers: NodeJS.Timeout[]
  readonly #off: (() => void)[]
  /** What the shared reader has handed out; undefined while nobody listens. */
  #tail: number | undefined

  constructor(database: Database, signals: Signals, access: Access, commentMs = 15_000) {
    this.#database = database
    this.#access = access
    this.#off = [
      signals.on('stamped', () => void this.#wake().catch(() => {})),
      signals.on('access', () => this.#recheck(0)),
    ]
    this.#timers = [setInterval(() => this.#look(), lookMs), setInterval(() => this.#comment(), commentMs)]
    for (const timer of this.#timers) timer.unref()
  }

  get count(): number {
    return this.#readers.size
  }

  /** Takes over the reply. 400 for a position that is gone or never was. */
  async open({ query, reply, request, caller }: StreamRequest, scope: EventScope): Promise<void> {
    if (query.page_token !== undefined)
      throw new Failure(
        'invalid_argument',
        'page_token is for lists: a stream continues after Last-Event-ID.',
      )
    if (query.after !== undefined)
      throw new Failure('invalid_argument', 'after is for lists: a stream goes on after Last-Event-ID.')
    const filter: StreamFilter = {
      ...scope,
      resourceId: query.resource_id ?? null,
      type: query.type ?? null,
      actor: query.actor ?? null,
    }
    const wanted = readPosition(request.headers['last-event-id'])
    // "From now on" begins after all that had happened when the request came.
    if (wanted === null) await stampEvents(this.#database, true)
    const { last, pruned } = await findEventBounds(this.#database)
    if (wanted !== null && wanted < pruned)
      throw new Failure(
        'invalid_argument',
        'Events after this Last-Event-ID are no longer kept (90 days): read what there is with a list, then stream from now on.',
      )
    if (wanted !== null && wanted > last)
      throw new Failure('invalid_argument', 'Last-Event-ID is a position that no event has yet.')
    const release = this.#held.hold(caller?.key ?? request.ip)

    reply.hijack()
    const answer = reply.raw
    answer.writeHead(200, {
      ...(reply.getHeaders() as Record<string, string>),
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-cache, no-transform',
      // For proxies that would wait for more.
      'X-Accel-Buffering': 'no',
    })
    if (request.method === 'HEAD') {
      release()
      answer.end()
      return
    }
    const reader: Reader = {
      stream: new EventStream(answer, filter, wanted ?? last, showsClientAddress(request.grant)),
      bearer: readBearer(request.headers),
      address: request.ip,
      routeId: request.routeId!,
      params: request.params as Record<string, string>,
      expiresAt: caller?.expiresAt ?? Number.POSITIVE_INFINITY,
      checkedAt: performance.now(),
    }
    this.#readers.add(reader)
    const leave = () => {
      release()
      this.#forget(reader)
    }
    answer.on('close', leave).on('error', leave)
    if (answer.destroyed) leave()
    this.#tail ??= last
    // Without data it is no event, yet a reader that loses the connection now knows where to go on.
    reader.stream.write(`id: ${wanted ?? last}\n\n`)
    this.#catchUp(reader.stream).catch(() => reader.stream.end())
    this.#wake().catch(() => {})
  }

  close(): void {
    for (const off of this.#off) off()
    for (const timer of this.#timers) clearInterval(timer)
    for (const { stream } of this.#readers) stream.end()
  }

  #forget(reader: Reader): void {
    this.#readers.delete(reader)
    if (this.#readers.size === 0) this.#tail = undefined
  }

  /** Reads up to where the shared reader is. It goes live in the same turn in which it finds nothing in between. */
  async #catchUp(stream: EventStream): Promise<void> {
    while (stream.isOpen) {
      const upTo = this.#tail ?? stream.position
      if (stream.position >= upTo) {
        stream.isLive = true
        return
      }
      const range = { after: stream.position, upTo }
      const rows = await listEventsBetween(this.#database, stream.filter, range, pastBatch)
      for (const row of rows.filter((row) => stream.wants(row))) {
        stream.write(frameOf(row, stream.showsClient))
        await stream.drained(drainMs)
      }
      stream.position = rows.length < pastBatch ? upTo : rows.at(-1)!.position
    }
  }

  #wake(): Promise<void> {
    return this.#handing.run().catch((error) => {
      if (!isDatabaseAway(error)) throw error
    })
  }

  /** Returns whether there may be more. */
  async #handOut(): Promise<boolean> {
    const after = this.#tail
    if (after === undefined) return false
    const upTo = Number.MAX_SAFE_INTEGER
    const rows = await listEventsBetween(this.#database, everything, { after, upTo }, liveBatch)
    // Everybody left meanwhile, and perhaps somebody came.
    if (this.#tail !== after || rows.length === 0) return this.#tail !== after
    const live = [...this.#readers].map(({ stream }) => stream).filter(({ isLive }) => isLive)
    // An event costs as much as it has readers, however many others there are.
    const byScope = groupBy(live, ({ filter }) => filter.projectId ?? filter.organizationId)
    for (const row of rows) {
      const scopes = new Set([row.project_id ?? row.organization_id, null])
      const listeners = [...scopes]
        .flatMap((scope) => byScope.get(scope) ?? [])
        .filter((stream) => stream.wants(row))
      // Made once for all who see the same of it.
      for (const [showsClient, alike] of groupBy(listeners, (stream) => stream.showsClient)) {
        const frame = frameOf(row, showsClient)
        for (const stream of alike) stream.write(frame)
      }
    }
    const tail = rows.at(-1)!.position
    for (const stream of live) stream.position = Math.max(stream.position, tail)
    this.#tail = tail
    return rows.length === liveBatch
  }

  #look(): void {
    if (this.#readers.size === 0) return
    this.#wake().catch(() => {})
    for (const reader of this.#readers) if (reader.expiresAt <= Date.now()) reader.stream.end()
    this.#recheck(recheckMs)
  }

  /** Ends the streams of those who may no longer read them. */
  #recheck(olderThanMs: number): void {
    const now = performance.now()
    // Many streams, few credentials: each is asked for once.
    const answers = new Map<string, Promise<Grant | null | undefined>>()
    for (const reader of this.#readers) {
      if (now - reader.checkedAt < olderThanMs) continue
      reader.checkedAt = now
      const key = JSON.stringify([reader.bearer?.digest, reader.address, reader.routeId, reader.params])
      const answer = answers.get(key) ?? this.#findGrant(reader)
      answers.set(key, answer)
      answer.then((grant) => {
        if (grant === null) reader.stream.end()
        if (!grant) return
        reader.expiresAt = grant.caller.expiresAt
        reader.stream.showsClient = showsClientAddress(grant)
      })
    }
  }

  /** Null when the reader may no longer read; undefined while the database is away, when nothing is read either. */
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
    throw new Failure('invalid_argument', 'Last-Event-ID must be the id of an event of this stream.')
  return Number(header)
}

export const wantsStream = (accept: string | undefined): boolean =>
  (accept ?? '').toLowerCase().includes('text/event-stream')
