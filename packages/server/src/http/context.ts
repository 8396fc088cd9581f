import type { RouteBody, RouteId, RouteParams, RouteQuery, RouteResponse } from '@slipway/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { KeyCreator } from '../accounts/child-keys.ts'
import { Failure } from '../domain/failure.ts'
import type { Catalogue } from '../fleet/offers.ts'
import type { ProjectRequester } from '../operations/admission.ts'
import type { CatalogueCache } from '../operations/catalogue.ts'
import type { Tx } from '../postgres/database.ts'
import type { JsonText } from '../postgres/json.ts'
import type { Services } from '../services.ts'
import type { OrganizationRequester, Requester } from '../store/events/events.ts'
import type { Caller, ProjectScope } from '../store/identity/access.ts'
import type { Inviter } from '../store/identity/invitations.ts'
import type { Access } from './access.ts'
import type { RateLimiter } from './limits/rate-limit.ts'
import type { OperationWaits } from './streams/operation-waits.ts'
import type { EventStreams } from './streams/streams.ts'

export interface HttpServices extends Services {
  access: Access
  streams: EventStreams
  operationWaits: OperationWaits
  /** The public catalogue, at most a second old. */
  catalogue: Catalogue
  catalogueCache: CatalogueCache
  /** Limits how often a caller reads all metrics of a project. */
  scrapes: RateLimiter
}

/** A validated request of an authorized caller. */
export interface Context<Id extends RouteId = RouteId> {
  services: HttpServices
  /** Null on public routes. */
  caller: Caller | null
  params: RouteParams<Id>
  query: RouteQuery<Id>
  body: RouteBody<Id>
  /** The project of the path. */
  project: ProjectScope
  /** The organization of the path, or of the project in the path. */
  organizationId: string
  /** For writes, the transaction of the request, which also stores the Idempotency-Key. For reads, the pool. */
  tx: Tx
  /** The caller, with the project and organization of the path, as writes and events record them. */
  by: RouteParams<Id> extends { project_id: string }
    ? ProjectRequester & OrganizationRequester
    : RouteParams<Id> extends { organization_id: string }
      ? OrganizationRequester
      : Requester
  routeId: RouteId
  /** A page of a list ends after this many bytes. */
  pageBytes: number
  requestId: string
  /** The client's address, which is read from X-Forwarded-For if a trusted proxy sent it. */
  address: string
  userAgent: string
  /** Throws 401, 404 or 403 if the caller lost access during a long wait. */
  requireStillAllowed(): Promise<void>
  /** Throws 402 unless the payment method works. */
  requirePayment(): void
  request: FastifyRequest
  reply: FastifyReply
}

/** A response that is not JSON, such as CSV. */
export class RawResponse {
  readonly contentType: string
  readonly content: string
  constructor(contentType: string, content: string) {
    this.contentType = contentType
    this.content = content
  }
}

/** Returned by a handler that sends the response itself, such as the handler of a stream. */
export const alreadyResponded = Symbol('alreadyResponded')

export type Handler<Id extends RouteId> = (
  context: Context<Id>,
) => Promise<RouteResponse<Id> | JsonText<RouteResponse<Id>> | RawResponse | typeof alreadyResponded>

export type Handlers = { [Id in RouteId]: Handler<Id> }

/** Returns the empty response of a route that only reports success. */
export async function emptyResponse(work: Promise<unknown>): Promise<Record<string, never>> {
  await work
  return {}
}

export function organizationsOf(caller: Caller): string[] {
  if (caller.kind === 'user') return [...caller.memberships.keys()]
  return caller.kind === 'access_key' ? [caller.organizationId] : []
}

/** Returns the caller as the creator of a key or an invitation. */
export function creatorOf(context: Context): KeyCreator {
  const caller = requireCaller(context)
  return caller.kind === 'user'
    ? { userId: caller.id, keyId: null }
    : { userId: caller.createdBy, keyId: caller.id }
}

export function inviterOf(context: Context, madeAs: Inviter['madeAs']): Inviter {
  const caller = requireCaller(context)
  const { userId, keyId } = creatorOf(context)
  const names = { access_key: 'an access key', operator_key: 'an operator' }
  return {
    invitedBy: caller.kind === 'user' ? caller.email : names[caller.kind],
    makerUserId: userId,
    makerKeyId: keyId,
    madeAs,
  }
}

export function requireUser(context: Context): Extract<Caller, { kind: 'user' }> {
  const caller = requireCaller(context)
  if (caller.kind !== 'user') throw new Failure('permission_denied', 'Only a signed-in user may do this.')
  return caller
}

export function requireCaller(context: Context): NonNullable<Context['caller']> {
  if (!context.caller) throw new Failure('unauthenticated', 'This request requires an access key or token.')
  return context.caller
}
