import type { RouteBody, RouteId, RouteParams, RouteQuery, RouteResponse } from '@slipway/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../domain/failure.ts'
import type { Catalogue } from '../fleet/offers.ts'
import type { ProjectRequester } from '../operations/admission.ts'
import type { CatalogueMemory } from '../operations/catalogue.ts'
import type { Tx } from '../postgres/database.ts'
import type { JsonText } from '../postgres/json.ts'
import type { Services } from '../services.ts'
import type { OrganizationRequester, Requester } from '../store/events/events.ts'
import type { Caller, ProjectScope } from '../store/identity/access.ts'
import type { Inviter } from '../store/identity/invitations.ts'
import type { Access } from './access.ts'
import type { Endings } from './streams/endings.ts'
import type { HeldAnswers } from './streams/held.ts'
import type { EventStreams } from './streams/streams.ts'

/** What the process offers to its handlers. */
export interface HttpServices extends Services {
  access: Access
  streams: EventStreams
  endings: Endings
  /** Waits for operations that callers have us hold. */
  waits: HeldAnswers
  /** What anyone may look at, at most a second old. */
  catalogue: Catalogue
  catalogueMemory: CatalogueMemory
}

/** What a handler gets: a checked request, by a caller who may make it. */
export interface Context<Id extends RouteId = RouteId> {
  services: HttpServices
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
  /** On whose behalf, as writes and events know it: the caller, and the project and organization of the path. */
  by: RouteParams<Id> extends { project_id: string }
    ? ProjectRequester & OrganizationRequester
    : RouteParams<Id> extends { organization_id: string }
      ? OrganizationRequester
      : Requester
  routeId: RouteId
  requestId: string
  /** Where the request comes from, by the rules of trusted proxies. */
  address: string
  /** What the client calls itself. */
  userAgent: string
  /** 401, 404 or 403 if the caller has lost the right meanwhile: before a held answer is sent. */
  requireStill(): Promise<void>
  /** 402 unless the payment method works: for what costs money. */
  requirePayment(): void
  request: FastifyRequest
  reply: FastifyReply
}

/** An answer that is not JSON, such as CSV. */
export class RawResponse {
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
) => Promise<RouteResponse<Id> | JsonText<RouteResponse<Id>> | RawResponse | typeof answered>

export type Handlers<Ids extends RouteId> = { [Id in Ids]: Handler<Id> }

/** The organizations that a caller can see. */
export function organizationsOf(caller: Caller): string[] {
  if (caller.kind === 'user') return [...caller.memberships.keys()]
  return caller.kind === 'access_key' ? [caller.organizationId] : []
}

/** The user to whom a key belongs that this caller makes. */
export function makerOf(context: Context): string | null {
  const caller = requireCaller(context)
  return caller.kind === 'user' ? caller.id : caller.createdBy
}

/** Who invites, by which credential and by which right. */
export function inviterOf(context: Context, madeAs: Inviter['madeAs']): Inviter {
  const caller = requireCaller(context)
  const names = { access_key: 'an access key', operator_key: 'an operator' }
  return {
    invitedBy: caller.kind === 'user' ? caller.email : names[caller.kind],
    makerUserId: makerOf(context),
    makerKeyId: caller.kind === 'user' ? null : caller.id,
    madeAs,
  }
}

export function requireUser(context: Context): Extract<Caller, { kind: 'user' }> {
  const caller = requireCaller(context)
  if (caller.kind !== 'user') throw new Failure('permission_denied', 'Only a signed-in user may do this.')
  return caller
}

export function requireCaller(context: Context): NonNullable<Context['caller']> {
  if (!context.caller) throw new Failure('unauthenticated', 'This needs a credential.')
  return context.caller
}
