import { setTimeout as delay } from 'node:timers/promises'
import { validateResponse } from '@slipway/testing/responses.ts'
import type { History } from './history.ts'
import { Random } from './random.ts'

const attemptMs = 2_000

export interface ApiResponse {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: responses of every shape, already validated
  body: any
}

/** A request that the service accepted. */
export interface Acknowledged {
  /** Used as both the idempotency key and the request id. */
  key: string
  operationId: string
  resourceId: string
}

interface Service {
  apiUrls: string[]
  token: string
  projectId: string
  history: History
}

type Attempt = [url: string, method: string, path: string, body: unknown, key: string]

/**
 * Sends requests as a careful program does: to one API process after another, with the same key, until one responds.
 */
export class Client {
  readonly acknowledged: Acknowledged[] = []
  readonly #service: Service
  readonly #name: string
  /** Separate from the random choices of actions, because the number of draws depends on how the service behaves. */
  readonly #routing: Random
  #count = 0

  constructor(name: string, seed: number, service: Service) {
    this.#name = name
    this.#service = service
    this.#routing = new Random(seed)
  }

  /** Reads something that exists. A refusal is a violation, because the access of the tenant is never revoked. */
  async get(path: string): Promise<ApiResponse> {
    const answer = await this.#sendUntilFinal('GET', path, undefined, '')
    if (answer.status !== 200)
      this.#service.history.violation(`GET ${path} got ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer
  }

  /** Starts an operation. The response is recorded if the service accepted the request. */
  async begin(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<ApiResponse> {
    const key = `${this.#name}-${++this.#count}`
    const answer = await this.#sendUntilFinal(method, path, body, key)
    const { operation } = answer.body
    this.#service.history.note(
      `${key} ${method} ${path} ${JSON.stringify(body ?? '')} → ${answer.status} ${operation?.operation_id ?? answer.body.message}`,
    )
    if (answer.status !== 200) return answer
    this.acknowledged.push({ key, operationId: operation.operation_id, resourceId: operation.metadata.id })
    if (this.#routing.isOneIn(8)) await this.#repeat(method, path, body, key, operation.operation_id)
    return answer
  }

  /** Makes a change that is not an operation. */
  async change(method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<void> {
    const key = `${this.#name}-${++this.#count}`
    const { status } = await this.#sendUntilFinal(method, path, body, key)
    this.#service.history.note(`${key} ${method} ${path} ${JSON.stringify(body ?? '')} → ${status}`)
  }

  /** Waits for an operation to end, but at most for this time. */
  async untilEnded(operationId: string, ms: number): Promise<void> {
    const until = performance.now() + ms
    while (performance.now() < until) {
      const { body } = await this.get(`/operations/${operationId}?wait=1`)
      if (body.state !== 'IN_PROGRESS') return
    }
  }

  async #repeat(method: string, path: string, body: unknown, key: string, operationId: string) {
    const again = await this.#sendUntilFinal(method, path, body, key)
    if (again.body.operation?.operation_id !== operationId)
      this.#service.history.violation(`${key} got ${operationId}, then ${JSON.stringify(again.body)}`)
  }

  async #sendUntilFinal(method: string, path: string, body: unknown, key: string): Promise<ApiResponse> {
    for (let turn = this.#routing.between(0, 1); ; turn++) {
      const { apiUrls } = this.#service
      const answer = await this.#attempt(apiUrls[turn % apiUrls.length]!, method, path, body, key)
      if (answer) return answer
      await delay(this.#routing.between(50, 300))
    }
  }

  /** Returns undefined if the request must be repeated: there was no response, or it does not say the outcome. */
  async #attempt(...request: Attempt): Promise<ApiResponse | undefined> {
    const startedMs = performance.now()
    const answer = await this.#send(...request)
    // The response contains an operation, or is one.
    const { metadata, operation = metadata && answer!.body } = answer?.body ?? {}
    this.#service.history.exchanges.push({
      ...{ startedMs, endedMs: performance.now(), key: request[4] },
      ...{ status: answer?.status ?? 0, isFinal: answer?.isFinal ?? false },
      ...(operation && { operationId: operation.operation_id, state: operation.state }),
    })
    return answer?.isFinal ? answer : undefined
  }

  /** Returns undefined if there was no response. */
  async #send(
    ...[url, method, path, body, key]: Attempt
  ): Promise<(ApiResponse & { isFinal: boolean }) | undefined> {
    const { token, projectId, history } = this.#service
    const fullPath = `/v0.1/projects/${projectId}${path}`
    let response: Response
    let text: string
    try {
      response = await fetch(url + fullPath, {
        method,
        signal: AbortSignal.timeout(attemptMs),
        headers: {
          authorization: `Bearer ${token}`,
          ...(key && { 'idempotency-key': key, 'x-request-id': key }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      text = await response.text()
    } catch {
      return undefined
    }
    const { status, headers } = response
    const answer = { status, body: JSON.parse(text) }
    try {
      validateResponse(method, fullPath, status, headers.get('content-type') ?? '', answer.body)
    } catch (error) {
      history.violation(`${key} ${method} ${path}: ${(error as Error).message}`)
    }
    if (status === 500) history.violation(`${key} ${method} ${path} got ${text}`)
    return { ...answer, isFinal: status < 500 && status !== 429 && !headers.has('retry-after') }
  }
}
