import type { RouteAnswer, RouteBody, RouteId, RouteParams, RouteQuery } from '@slipway/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import type { Engines } from '../operations/engine.ts'
import type { Caller, ProjectScope } from '../store/access.ts'
import type { Database, Tx } from '../store/database.ts'
import type { NewEvent } from '../store/events.ts'
import type { Signals } from '../store/signals.ts'
import type { EventStreams } from './event-streams.ts'

/** What the process offers to its handlers. */
export interface Services {
  config: Config
  database: Database
  signals: Signals
  engines: Engines
  streams: EventStreams
  version: string
  /** Where clients reach us, for links. */
  publicUrl: () => string
}

/** What a handler gets: a checked request, by a caller who may make it. */
export interface Context<Id extends RouteId = RouteId> {
  services: Services
  /** Null on public routes. */
  caller: Caller | null
  params: RouteParams<Id>
  query: RouteQuery<Id>
  body: RouteBody<Id>
  /** The project of the path. */
  project: ProjectScope
  /** The organization of the path, or of the project of the path. */
  organizationId: string
  /** Writes: the transaction of the request, which also remembers its Idempotency-Key. Reads: the pool. */
  tx: Tx
  /** `user:<id>`, `access_key:<id>`, `operator_key:<id>`; '' on public routes. */
  actor: string
  requestId: string
  /** Where the request comes from, by the rules of trusted proxies. */
  address: string
  /** Records what the call did, in its transaction. Every successful write does so at least once. */
  audit(event: Omit<NewEvent, 'actor' | 'requestId'>): Promise<void>
  /** As `audit`, for an event that another statement has written. */
  noteEvent(): void
  /** 402 unless the payment method works: for what costs money. */
  requirePayment(): void
  request: FastifyRequest
  reply: FastifyReply
}

/** An answer that is not JSON, such as CSV. */
export class RawAnswer {
  readonly contentType: string
  readonly content: string
  constructor(contentType: string, content: string) {
    this.contentType = contentType
    this.content = content
  }
}

/** The handler has taken over the reply (streams). */
export const answered = Symbol('answered')

export type Handler<Id extends RouteId> = (
  context: Context<Id>,
) => Promise<RouteAnswer<Id> | RawAnswer | typeof answered>

export type Handlers<Ids extends RouteId> = { [Id in Ids]: Handler<Id> }

export const callerKey = (caller: Caller): string => `${caller.kind}:${caller.id}`
