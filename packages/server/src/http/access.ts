import { type Role, type Route, roles } from '@slipway/contract'
import type { FastifyRequest } from 'fastify'
import { isAccessKeyShape } from '../domain/access-key.ts'
import { isInBlockList } from '../domain/address-blocks.ts'
import { Failure, notFound, requireFound } from '../domain/failure.ts'
import { isUuid } from '../domain/ids.ts'
import { digestOf } from '../domain/secret.ts'
import type { Queryable } from '../postgres/database.ts'
import type { Signals } from '../postgres/signals.ts'
import {
  type Caller,
  findKeyCaller,
  findProjectScope,
  findTokenCaller,
  type ProjectScope,
} from '../store/identity/access.ts'
import { chain, type MaybePromise, RecentKeys, ShortCache } from './short-cache.ts'
import type { Holder } from './streams/held-responses.ts'
import { invalidParameter } from './validation.ts'

export interface Grant {
  caller: Caller
  project: ProjectScope | null
  organizationId: string | null
}

/** The owner of requests without a credential. */
export const publicOwner = 'public'
const operators = 'operators'

/**
 * Returns the owner whose limits a request counts against: the organization, all operators together, or the
 * user if the request belongs to no single organization.
 */
export function ownerOf(caller: Caller, organizationId: string | null): string {
  if (isOperator(caller)) return operators
  if (caller.kind === 'access_key') return caller.organizationId
  return organizationId ?? onlyOrganizationOf(caller) ?? caller.key
}

/** Returns the caller and the owner that a long-lived response counts against. */
export function holderOf({ grant, ip }: Pick<FastifyRequest, 'grant' | 'ip'>): Holder {
  if (!grant) return { caller: ip, owner: publicOwner }
  return { caller: grant.caller.key, owner: ownerOf(grant.caller, grant.organizationId) }
}

function onlyOrganizationOf(caller: Caller): string | undefined {
  if (caller.kind !== 'user' || caller.memberships.size !== 1) return undefined
  return caller.memberships.keys().next().value
}

const isOperator = (caller: Caller): boolean =>
  caller.kind === 'operator_key' || (caller.kind === 'user' && caller.isOperator)

/** Authenticates callers and checks what they may do. Synchronous for cached callers. */
export class Access {
  readonly #keys: ShortCache<Caller | null>
  readonly #users: ShortCache<Caller | null>
  readonly #projects: ShortCache<ProjectScope | null>
  readonly #validDigests = new RecentKeys()
  readonly #isOfTransaction: boolean

  /** An instance without signals serves only one transaction. */
  constructor(database: Queryable, signals?: Signals) {
    this.#isOfTransaction = signals === undefined
    const rememberValid = (digest: string) => (caller: Caller | null) => {
      if (caller) this.#validDigests.add(digest)
      return caller
    }
    this.#keys = new ShortCache((digest) =>
      findKeyCaller(database, digest, !this.#isOfTransaction).then(rememberValid(digest)),
    )
    this.#users = new ShortCache((digest) => findTokenCaller(database, digest).then(rememberValid(digest)))
    this.#projects = new ShortCache((projectId) => {
      if (!isUuid(projectId)) throw invalidParameter('project_id', 'must be a UUID')
      return findProjectScope(database, projectId)
    })
    signals?.on('access', () => {
      for (const cache of [this.#keys, this.#users, this.#projects]) cache.clear()
    })
  }

  /** Throws 401, 404, 403 or 402 if the caller may not make this request. */
  async grant(
    route: Route,
    { headers, ip, params }: Pick<FastifyRequest, 'headers' | 'ip' | 'params'>,
  ): Promise<Grant> {
    const { project_id } = params as Record<string, string>
    // The caller was authorized before the transaction began. Start reading the project now, so that the project
    // and the caller are read in one round trip.
    if (this.#isOfTransaction && project_id !== undefined && isUuid(project_id))
      void this.#projects.get(project_id)
    const caller = await this.authenticate(readBearer(headers), ip)
    return this.authorize(route, caller, params as Record<string, string>)
  }

  /**
   * Returns whether the bearer token was valid recently. A request with such a token does not count as an attempt to
   * guess a token.
   */
  wasRecentlyValid(bearer: Bearer): boolean {
    return this.#validDigests.has(bearer.digest)
  }

  /** Throws 401 unless the bearer token belongs to a caller who may use it from this address. */
  async authenticate(bearer: Bearer | undefined, address: string): Promise<Caller> {
    if (!bearer)
      throw new Failure('unauthenticated', 'Send an access key or token as "Authorization: Bearer …".')
    const caller = await this.#cacheOf(bearer).get(bearer.digest)
    if (!caller || !isUsable(caller, address))
      throw new Failure('unauthenticated', 'This credential is unknown, revoked or expired.')
    return caller
  }

  /** Returns the cached caller of this bearer token. */
  findCached(bearer: Bearer | undefined, address: string): Caller | undefined {
    const caller = bearer && this.#cacheOf(bearer).peek(bearer.digest)
    return caller && isUsable(caller, address) ? caller : undefined
  }

  /**
   * Throws 404 if the caller cannot see the resource, 403 if the role does not allow the request, and 402 if the
   * request requires a payment method. If several apply, the first is thrown.
   */
  authorize(route: Route, caller: Caller, params: Record<string, string>): MaybePromise<Grant> {
    if (route.access === 'operator') {
      if (isOperator(caller)) return { caller, project: null, organizationId: null }
      throw new Failure('permission_denied', 'Only operators may do this.')
    }
    if (route.access === 'user' && caller.kind !== 'user')
      throw new Failure('permission_denied', 'Only a signed-in user may do this.')
    if (params.project_id !== undefined) return this.#authorizeProject(route, caller, params.project_id)
    if (params.organization_id !== undefined)
      return this.#authorizeOrganization(route, caller, params.organization_id)
    return { caller, project: null, organizationId: null }
  }

  #authorizeProject(route: Route, caller: Caller, projectId: string): MaybePromise<Grant> {
    return chain(this.#projects.get(projectId), (project) => {
      const access = project && findRole(caller, project.organizationId, project.projectId)
      if (!project || !access?.role) throw notFound('project')
      requireRole(route, access)
      if (route.payment !== 'none' && project.paymentState === 'never') throw paymentRequired(project)
      if (route.payment === 'active' && project.paymentState !== 'active') throw paymentRequired(project)
      return { caller, project, organizationId: project.organizationId }
    })
  }

  #cacheOf({ isKey }: Bearer): ShortCache<Caller | null> {
    return isKey ? this.#keys : this.#users
  }

  #authorizeOrganization(route: Route, caller: Caller, organizationId: string): Grant {
    if (!isUuid(organizationId)) throw invalidParameter('organization_id', 'must be a UUID')
    const access = requireFound('organization', findRole(caller, organizationId))
    const isOpenToKey = route.alsoWriteKeys && isWriteKeyOfProject(caller)
    requireRole(isOpenToKey ? { ...route, access: 'visible' } : route, access)
    return { caller, project: null, organizationId }
  }
}

/** A bearer token. Only its digest is kept. */
export interface Bearer {
  digest: string
  /** True for an access key, false for a user's token. */
  isKey: boolean
}

export function readBearer({ authorization }: { authorization?: string | undefined }): Bearer | undefined {
  const bearer = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(authorization ?? '')?.[1]
  return bearer === undefined ? undefined : { digest: digestOf(bearer), isKey: isAccessKeyShape(bearer) }
}

/** The last bearer token of each connection, because most requests of a connection send the same one. */
const lastRead = new WeakMap<object, { authorization: string | undefined; bearer: Bearer | undefined }>()

export function bearerOf({ headers, raw }: Pick<FastifyRequest, 'headers' | 'raw'>): Bearer | undefined {
  const { authorization } = headers
  const known = lastRead.get(raw.socket)
  if (known && known.authorization === authorization) return known.bearer
  const bearer = readBearer(headers)
  lastRead.set(raw.socket, { authorization, bearer })
  return bearer
}

const isWriteKeyOfProject = (caller: Caller): boolean =>
  caller.kind === 'access_key' && caller.projectId !== null && caller.role === 'write'

const isUsable = (caller: Caller, address: string): boolean =>
  caller.expiresAt > Date.now() &&
  (caller.kind === 'user' || !caller.allowedFrom || isInBlockList(caller.allowedFrom, address))

/** The role of a caller in an organization, and the restrictions on the caller there. */
export interface EffectiveRole {
  /** Undefined for a project's access key outside its project. */
  role: Role | undefined
  isSuspended: boolean
  lacksSecondFactor?: boolean
}

/** Returns undefined if the caller cannot see the organization. */
export function findRole(
  caller: Caller,
  organizationId: string,
  projectId?: string,
): EffectiveRole | undefined {
  if (caller.kind === 'user') return caller.memberships.get(organizationId)
  if (caller.kind !== 'access_key' || caller.organizationId !== organizationId) return undefined
  const { isSuspended } = caller
  if (caller.projectId === null) return { role: caller.role as Role, isSuspended }
  const role = caller.role === 'write' ? 'member' : 'viewer'
  return { role: caller.projectId === projectId ? role : undefined, isSuspended }
}

/** Returns whether the caller has at least this role in the project or organization of the path. */
export function isAtLeast(
  least: Role,
  {
    caller,
    organizationId,
    project,
  }: { caller: Caller | null; organizationId: string; project: { projectId: string } | null },
): boolean {
  const role = caller && findRole(caller, organizationId, project?.projectId)?.role
  return role != null && roles.indexOf(role) >= roles.indexOf(least)
}

/**
 * Returns whether the caller may see the addresses of other callers. Admins and owners may; operators may on operator
 * routes.
 */
export function showsClientAddress(grant: Grant | null): boolean {
  if (!grant) return false
  if (!grant.organizationId) return true
  const role = findRole(grant.caller, grant.organizationId, grant.project?.projectId)?.role
  return role !== undefined && roles.indexOf(role) >= roles.indexOf('admin')
}

/**
 * Returns whether the caller may read scripts, which may contain secrets. Members and higher roles may, and so may
 * access keys with the role write.
 */
export function showsScripts(grant: Grant | null): boolean {
  const role = grant?.organizationId
    ? findRole(grant.caller, grant.organizationId, grant.project?.projectId)?.role
    : undefined
  return role !== undefined && role !== 'viewer'
}

/** Throws 403. A suspended organization is reported before a missing role. */
export function requireRole(
  route: Pick<Route, 'access' | 'worksSuspended'>,
  { role, isSuspended, lacksSecondFactor }: EffectiveRole,
): void {
  if (isSuspended && !route.worksSuspended)
    throw new Failure(
      'suspended',
      'The organization is suspended. Contact the operator of this service. Billing still works.',
    )
  if (lacksSecondFactor)
    throw new Failure(
      'totp_enrolment_required',
      'This organization requires two-factor authentication. Set it up for your account, then sign in again.',
    )
  if (route.access === 'visible') return
  const needed = roles.indexOf(route.access as Role)
  if (!role || roles.indexOf(role) < needed)
    throw new Failure(
      'permission_denied',
      role
        ? `This request requires the ${route.access} role. Your role is ${role}.`
        : `This request requires the ${route.access} role in the organization. A project’s access key has no role there.`,
    )
}

export function paymentRequired(project: ProjectScope): Failure {
  const path = `/v0.1/organizations/${project.organizationId}/billing`
  return new Failure(
    'payment_method_required',
    project.paymentState === 'never'
      ? `Set up a payment method first. An owner can get the link from GET ${path}.`
      : `The payment method was removed or declined. An owner can set up a new one: GET ${path} returns the link.`,
  )
}
