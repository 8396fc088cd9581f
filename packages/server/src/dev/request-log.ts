import type { DevRequest } from '@slipway/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'

const maxKept = 1_000
const maxBodyCharacters = 16_384
const hiddenHeaders = ['authorization', 'cookie', 'proxy-authorization']
const hiddenMembers = /password|secret|token|code|script|private_key/i

/** The recent requests of clients, without credentials, secrets and scripts. */
export class RequestLog {
  readonly #kept: DevRequest[] = []
  #position = 0

  record(request: FastifyRequest, reply: FastifyReply, now: Date): void {
    const path = request.url
    if (path.startsWith('/_dev') || path.startsWith('/billing/') || request.routeId === null) return
    this.#kept.push({
      position: ++this.#position,
      at: now.toISOString(),
      method: request.method,
      path,
      route: request.routeId,
      headers: shownHeaders(request),
      body: shownBody(request.body),
      status: reply.statusCode,
    })
    if (this.#kept.length > maxKept) this.#kept.shift()
  }

  after(position: number): DevRequest[] {
    return this.#kept.filter((request) => request.position > position)
  }

  clear(): void {
    this.#kept.length = 0
  }
}

const shownHeaders = ({ headers }: FastifyRequest): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      hiddenHeaders.includes(name) ? [] : [[name, String(value)]],
    ),
  )

/** Returns the body as the client sent it, with '(omitted)' in place of secrets. */
function shownBody(body: unknown): unknown {
  if (body === undefined || body === null) return null
  const text = JSON.stringify(body, (name, value) =>
    name !== '' && hiddenMembers.test(name) && value !== '' ? '(omitted)' : value,
  )
  return text.length > maxBodyCharacters ? '(too long)' : JSON.parse(text)
}
