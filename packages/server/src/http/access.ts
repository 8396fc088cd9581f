import { type Role, type Route, roles } from '@slipway/contract'
import type { FastifyRequest } from 'fastify'
import { isAccessKeyShape } from '../domain/access-key.ts'
import { isInBlockList } from '../domain/address-blocks.ts'
import { Failure } from '../domain/failure.ts'
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

/** Longest time that a revoked credential or a lost role can still be felt, if no wake-up came. */
const cacheMs = 500
const mostCached = 20_000

export interface Grant {
  caller: Caller
  project: ProjectScope | null
  organizationId: string | null
}

/** What is there at once where it is known, and otherwise comes from the database. */
export type MaybePromise<T> = T | Promise<T>

export const soon = <T, U>(value: MaybePromise<T>, then: (value: T) => MaybePromise<U>): MaybePromise<U> =>
  value instanceof Promise ? value.then(then) : then(value)

/** What access looks at in a request. */
export type GrantedRequest = Pick<FastifyRequest, 'headers' | 'ip' | 'params'>

/** Decides who calls and whether they may; answers from a cache that lives half a second, and then at once. */
export class Access {
  readonly #keys: Remembered<Caller | null>
  readonly #users: Remembered<Caller | null>
  readonly #projects: Remembered<ProjectScope | null>
  readonly #proven = new RecentKeys()
  readonly #isLasting: boolean

  /** Without signals it is for the moment of one transaction. */
  constructor(database: Queryable, signals?: Signals) {
    this.#isLasting = signals !== undefined
    const proven = (digest: string) => (caller: Caller | null) => {
      if (caller) this.#proven.add(digest)
      return caller
    }
    this.#keys = new Remembered((digest) =>
      findKeyCaller(database, digest, this.#isLasting).then(proven(digest)),
    )
    this.#users = new Remembered((digest) => findTokenCaller(database, digest).then(proven(digest)))
    this.#projects = new Remembered((projectId) => {
      if (!isUuid(projectId)) throw badId('project_id')
      return findProjectScope(database, projectId)
    })
    signals?.on('access', () => {
      for (const memory of [this.#keys, this.#users, this.#projects]) memory.clear()
    })
  }

  /** 401, 404, 403 or 402 for whoever may not make this request. */
  async grant(route: Route, { headers, ip, params }: GrantedRequest): Promise<Grant> {
    const { project_id } = params as Record<string, string>
    // A transaction is for callers who were let in a moment ago: both are looked up in one go.
    if (!this.#isLasting && project_id !== undefined && isUuid(project_id))
      void this.#projects.get(project_id)
    const caller = await this.authenticate(readBearer(headers), ip)
    return this.authorize(route, caller, params as Record<string, string>)
  }

  /**
   * Whether the bearer was good a short while ago, so that looking it up again is no guess. Others pay for the look
   * before it is made.
   */
  isProven(bearer: Bearer): boolean {
    return this.#proven.has(bearer.digest)
  }

  /** 401 unless the bearer stands for someone. */
  async authenticate(bearer: Bearer | undefined, address: string): Promise<Caller> {
    if (!bearer)
      throw new Failure('unauthenticated', 'Send an access key or token as "Authorization: Bearer …".')
    const caller = await this.#memoryOf(bearer).get(bearer.digest)
    if (!caller || !isUsable(caller, address))
      throw new Failure('unauthenticated', 'This credential is unknown, revoked or expired.')
    return caller
  }

  /** Whom the bearer is remembered to stand for; undefined if that has to be looked up, or is nobody. */
  recall(bearer: Bearer | undefined, address: string): Caller | undefined {
    const caller = bearer && this.#memoryOf(bearer).recall(bearer.digest)
    return caller && isUsable(caller, address) ? caller : undefined
  }

  /** 404 for what the caller cannot see, then 403 for what it may not do, then 402. */
  authorize(route: Route, caller: Caller, params: Record<string, string>): MaybePromise<Grant> {
    if (route.access === 'operator') {
      if (caller.kind === 'operator_key' || (caller.kind === 'user' && caller.isOperator))
        return { caller, project: null, organizationId: null }
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
    return soon(this.#projects.get(projectId), (project) => {
      const standing = project && standingIn(caller, project.organizationId, project.projectId)
      if (!project || !standing?.role) throw new Failure('not_found', 'There is no project with this id.')
      requireRole(route, standing)
      if (route.payment !== 'none' && project.paymentState === 'never') throw paymentRequired(project)
      if (route.payment === 'active' && project.paymentState !== 'active') throw paymentRequired(project)
      return { caller, project, organizationId: project.organizationId }
    })
  }

  #memoryOf({ isKey }: Bearer): Remembered<Caller | null> {
    return isKey ? this.#keys : this.#users
  }

  #authorizeOrganization(route: Route, caller: Caller, organizationId: string): Grant {
    if (!isUuid(organizationId)) throw badId('organization_id')
    const standing = standingIn(caller, organizationId)
    if (!standing) throw new Failure('not_found', 'There is no organization with this id.')
    const isOpenToKey = route.alsoWriteKeys && isWriteKeyOfProject(caller)
    requireRole(isOpenToKey ? { ...route, access: 'visible' } : route, standing)
    return { caller, project: null, organizationId }
  }
}

/** A credential as it came, known by its digest alone. */
export interface Bearer {
  digest: string
  /** An access key; otherwise a user's token. */
  isKey: boolean
}

export function readBearer({ authorization }: { authorization?: string | undefined }): Bearer | undefined {
  const bearer = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(authorization ?? '')?.[1]
  return bearer === undefined ? undefined : { digest: digestOf(bearer), isKey: isAccessKeyShape(bearer) }
}

/** What was last read on a connection. Mostly it comes with the same credential again. */
const lastRead = new WeakMap<object, { authorization: string | undefined; bearer: Bearer | undefined }>()

/** The bearer of a request, read once for all requests of a connection that bring the same. */
export function bearerOf({ headers, raw }: Pick<FastifyRequest, 'headers' | 'raw'>): Bearer | undefined {
  const { authorization } = headers
  const known = lastRead.get(raw.socket)
  if (known && known.authorization === authorization) return known.bearer
  const bearer = readBearer(headers)
  lastRead.set(raw.socket, { authorization, bearer })
  return bearer
}

/** The last few thousand keys, those first forgotten that were not added again for the longest time. */
class RecentKeys {
  readonly #keys = new Set<string>()

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  add(key: string): void {
    this.#keys.delete(key)
    if (this.#keys.size >= mostCached) this.#keys.delete(this.#keys.values().next().value!)
    this.#keys.add(key)
  }
}

/** Remembers for half a second. Who asks while an answer is on its way waits for the same one. */
class Remembered<T> {
  readonly #find: (key: string) => Promise<T>
  readonly #answers = new Map<string, { answer: MaybePromise<T>; until: number }>()

  constructor(find: (key: string) => Promise<T>) {
    this.#find = find
  }

  /** Undefined if it is not known, or not yet. */
  recall(key: string): T | undefined {
    const known = this.#answers.get(key)
    return known && !(known.answer instanceof Promise) && known.until > performance.now()
      ? known.answer
      : undefined
  }

  get(key: string): MaybePromise<T> {
    const known = this.#answers.get(key)
    if (known && known.until > performance.now()) return known.answer
    if (this.#answers.size >= mostCached) this.#answers.clear()
    const answer = this.#find(key)
    const entry: { answer: MaybePromise<T>; until: number } = { answer, until: performance.now() + cacheMs }
    this.#answers.set(key, entry)
    answer.then(
      (found) => {
        entry.answer = found
      },
      () => this.#answers.delete(key),
    )
    return answer
  }

  clear(): void {
    this.#answers.clear()
  }
}

const isWriteKeyOfProject = (caller: Caller): boolean =>
  caller.kind === 'access_key' && caller.projectId !== null && caller.role === 'write'

/** Whether it still works, and from there. */
const isUsable = (caller: Caller, address: string): boolean =>
  caller.expiresAt > Date.now() &&
  (caller.kind === 'user' || !caller.allowedFrom || isInBlockList(caller.allowedFrom, address))

/** How a caller stands in an organization that it can see. */
export interface Standing {
  /** None for a project's key outside its project. */
  role: Role | undefined
  isSuspended: boolean
  lacksSecondFactor?: boolean
}

/** Undefined for whoever cannot see the organization. A project's key has a role in its own project alone. */
export function standingIn(caller: Caller, organizationId: string, projectId?: string): Standing | undefined {
  if (caller.kind === 'user') return caller.memberships.get(organizationId)
  if (caller.kind !== 'access_key' || caller.organizationId !== organizationId) return undefined
  const { isSuspended } = caller
  if (caller.projectId === null) return { role: caller.role as Role, isSuspended }
  const role = caller.role === 'write' ? 'member' : 'viewer'
  return { role: caller.projectId === projectId ? role : undefined, isSuspended }
}

/** Addresses of callers are shown to admins and above, and to operators where they work as such. */
export function showsClientAddress(grant: Grant | null): boolean {
  if (!grant) return false
  if (!grant.organizationId) return true
  const role = standingIn(grant.caller, grant.organizationId, grant.project?.projectId)?.role
  return role !== undefined && roles.indexOf(role) >= roles.indexOf('admin')
}

/** 403 `suspended` comes before 403 for want of a role. */
export function requireRole(
  route: Pick<Route, 'access' | 'worksSuspended'>,
  { role, isSuspended, lacksSecondFactor }: Standing,
): void {
  if (isSuspended && !route.worksSuspended)
    throw new Failure(
      'suspended',
      'The organization is suspended: ask the operator of this service. Billing still works.',
    )
  if (lacksSecondFactor)
    throw new Failure(
      'totp_enrolment_required',
      'This organization demands a second factor: set one up for your account, then sign in with it.',
    )
  if (route.access === 'visible') return
  const needed = roles.indexOf(route.access as Role)
  if (!role || roles.indexOf(role) < needed)
    throw new Failure(
      'permission_denied',
      role
        ? `This needs the role ${route.access}; yours here is ${role}.`
        : `This needs the role ${route.access} in the organization; a project’s access key has none there.`,
    )
}

export function paymentRequired(project: ProjectScope): Failure {
  const path = `/v0.1/organizations/${project.organizationId}/billing`
  return new Failure(
    'payment_method_required',
    project.paymentState === 'never'
      ? `Set up a payment method first: an owner gets the link from GET ${path}.`
      : `The payment method is gone or was declined: an owner can replace it by the link from GET ${path}.`,
  )
}

const badId = (name: string) =>
  new Failure('invalid_argument', `${name} must be a UUID.`, {
    details: [{ field: name, message: 'must be a UUID' }],
  })
