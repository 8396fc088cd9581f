import { createHash } from 'node:crypto'
import {
  type ErrorCode,
  type OperationName,
  type RouteId,
  type RouteParams,
  type RouteResponse,
  routeOf,
} from '@slipway/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../../domain/failure.ts'
import { isUuid, uuid } from '../../domain/ids.ts'
import { time } from '../../postgres/time.ts'
import {
  type FamilyOperationRow,
  findFamilyOperationOfRequest,
  keepFamilyOperation,
} from '../../store/family/operations.ts'
import type { Grant } from '../access.ts'
import type { HttpServices } from '../context.ts'
import type { RateLimiter } from '../limits/rate-limit.ts'
import { type Members, memberOf } from './members.ts'
import type { FamilyOperation } from './shapes/operations.ts'
import { inSeconds } from './shapes/time.ts'
import type { Signer } from './signing-keys.ts'

export interface FamilyServices extends HttpServices {
  app: FastifyInstance
  limiter: RateLimiter
}

interface OwnApiRequest<Id extends RouteId> {
  params?: Partial<RouteParams<Id>> & Record<string, string>
  query?: Record<string, string | undefined>
  body?: object
  /** Part of the Idempotency-Key. It must differ if one signed request makes several requests. */
  part?: string
}

/** The subject of an operation that only clients of the compatible API see. */
export interface OperationSubject {
  name: OperationName
  type: string
  /** Absent if nothing was created. */
  id?: string
}

/** A verified request of the compatible API, which becomes one or more requests to Slipway's own API. */
export class FamilyCall {
  readonly services: FamilyServices
  readonly signer: Signer
  readonly params: Record<string, string>
  readonly query: Record<string, string>
  readonly body: Members
  /** True if an identical earlier request already made one of the requests to Slipway's own API. */
  isRepeated = false
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply

  constructor(services: FamilyServices, signer: Signer, request: FastifyRequest, reply: FastifyReply) {
    this.services = services
    this.signer = signer
    this.params = request.params as Record<string, string>
    this.query = request.query as Record<string, string>
    this.body = (request.body ?? {}) as Members
    this.#request = request
    this.#reply = reply
  }

  get projectId(): string {
    return this.params.project_id ?? ''
  }

  /**
   * Calls Slipway's own API as the same caller, with all checks, limits and records of the route. Throws the
   * error that the API returns. The request has an Idempotency-Key, so that repeating a signed request has no
   * second effect.
   */
  async ownApi<Id extends RouteId>(id: Id, request: OwnApiRequest<Id> = {}): Promise<RouteResponse<Id>> {
    const { method, path } = routeOf(id)
    const params: Record<string, string> = { ...this.params, ...request.params }
    const url = path.replace(/\{(\w+)\}/g, (_, name: string) => requireId(name, params[name]))
    const query = Object.entries(request.query ?? {}).filter((pair): pair is [string, string] => !!pair[1])
    const response = await this.services.app
      .inject({
        method,
        url: `${url}?${new URLSearchParams(query)}`,
        remoteAddress: this.signer.address,
        headers: {
          authorization: `Bearer ${this.signer.bearer}`,
          'x-request-id': this.#request.id,
          ...(method !== 'GET' && { 'idempotency-key': this.#idempotencyKey(request.part) }),
          ...(request.body && { 'content-type': 'application/json' }),
        },
        ...(request.body && { payload: JSON.stringify(request.body) }),
      })
      .catch(refuseWhileStopping)
    for (const name of ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'])
      if (response.headers[name] !== undefined) this.#reply.header(name, response.headers[name])
    if (response.headers['idempotency-replayed']) this.isRepeated = true
    const content = response.body === '' ? {} : JSON.parse(response.body)
    if (response.statusCode < 400) return content
    const retryAfterSeconds = Number(response.headers['retry-after'] ?? 0)
    throw new Failure(content.code, content.message, { ...(retryAfterSeconds > 0 && { retryAfterSeconds }) })
  }

  /** Returns the items of all pages of a list. */
  async all<Id extends RouteId>(id: Id, request: OwnApiRequest<Id> = {}): Promise<ItemOf<Id>[]> {
    const items: ItemOf<Id>[] = []
    let pageToken = ''
    do {
      const query = { ...request.query, limit: '500', page_token: pageToken }
      const page = (await this.ownApi(id, { ...request, query })) as unknown as Page<ItemOf<Id>>
      items.push(...page.items)
      pageToken = page.next_page_token
    } while (pageToken)
    return items
  }

  /** Applies the rate limit and checks the caller's rights, for a call that does not use Slipway's API. */
  async enter(id: RouteId): Promise<Grant> {
    const { caller } = this.signer
    this.services.limiter.take(caller.key, this.#reply)
    return this.services.access.authorize(routeOf(id), caller, this.params)
  }

  /**
   * Begins an operation. Clients expect a lack of capacity or quota to be reported as a failed operation, so
   * such a refusal is stored as one. A repeated request gets the same operation.
   */
  async operation(
    subject: OperationSubject,
    begin: () => Promise<FamilyOperation>,
  ): Promise<{ operation: FamilyOperation }> {
    const { database } = this.services
    const known = await findFamilyOperationOfRequest(database, this.projectId, this.#requestHash())
    if (known) return { operation: known.operation as unknown as FamilyOperation }
    try {
      return { operation: await begin() }
    } catch (error) {
      if (!isCapacityOrQuotaRefusal(error)) throw error
      const { code, message } = error
      return { operation: await this.keep(subject, 'FAILED', { code: code as ErrorCode, message }) }
    }
  }

  /** Makes an immediate change, and stores it as an operation that succeeded. */
  change(subject: OperationSubject, change: () => Promise<unknown>): Promise<{ operation: FamilyOperation }> {
    return this.operation(subject, async () => this.keep(subject, 'SUCCEEDED', await change()))
  }

  /** Stores an operation, so that any process can show it. */
  async keep(
    { name, type, id = uuid() }: OperationSubject,
    state: FamilyOperation['state'],
    result: unknown,
    parts: string[] = [],
  ): Promise<FamilyOperation> {
    const operationId = uuid()
    const now = inSeconds(time(new Date()))
    const operation: FamilyOperation = {
      operation_id: operationId,
      state,
      metadata: { operation_name: name, id, type },
      result,
      started_at: now,
      completed_at: state === 'IN_PROGRESS' ? '' : now,
    }
    const kept: FamilyOperationRow = await keepFamilyOperation(this.services.database, {
      id: operationId,
      projectId: this.projectId,
      requestHash: this.#requestHash(),
      operation: JSON.stringify(operation),
      parts,
    })
    return kept.operation as unknown as FamilyOperation
  }

  /**
   * Returns a member of the body, such as `network_interfaces[0].subnet` for ('network_interfaces', 0,
   * 'subnet').
   */
  bodyMember(...path: (string | number)[]): unknown {
    return memberOf(this.body, ...path)
  }

  /**
   * The hash includes the body, because two requests with different bodies in the same second have the same
   * signature.
   */
  #requestHash(): Buffer {
    const { keyId, signature } = this.signer
    const body = this.#request.bodyDigest ?? ''
    return createHash('sha256').update(`${keyId} ${signature} ${body}`).digest()
  }

  #idempotencyKey(part = ''): string {
    return `family-${this.#requestHash().toString('hex')}${part && `-${part}`}`
  }
}

/** Requires every path parameter to be an id, so that none can lead to another path. */
export function requireId(name: string, value = ''): string {
  if (isUuid(value)) return value.toLowerCase()
  const resource = name.replace(/_id$/, '').replaceAll('_', ' ')
  throw new Failure('not_found', `There is no ${resource} with this id.`)
}

interface Page<Item> {
  items: Item[]
  next_page_token: string
}

type ItemOf<Id extends RouteId> = RouteResponse<Id> extends { items: (infer Item)[] } ? Item : never

const isCapacityOrQuotaRefusal = (error: unknown): error is Failure =>
  error instanceof Failure && (error.code === 'out_of_stock' || error.code === 'quota_exceeded')

function refuseWhileStopping(error: Error & { code?: string }): never {
  if (error.code?.startsWith('FST_ERR_REOPENED'))
    throw new Failure('unavailable', 'The server is stopping. Try again.')
  throw error
}
