import { createHash } from 'node:crypto'
import { buildOpenApi } from '@slipway/contract/openapi'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RateLimiter } from '../limits/rate-limit.ts'
import { onFirstUse } from '../on-first-use.ts'
import { docsPage, docsSecurityPolicy } from './page.ts'
import { docsStyle } from './style.ts'
import { docsScript } from './try.ts'

export interface DocsOptions {
  version: string
  /** Called at the first request, when the port is known. */
  serverUrl: () => string
}

/** Serves `/openapi.json` and the reference page, both built at the first request and revalidated by ETag. */
export function mountDocs(
  app: FastifyInstance,
  { version, serverUrl }: DocsOptions,
  limiter: RateLimiter,
): void {
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) =>
    limiter.takeAddress(request.ip, reply)
  const openApi = onFirstUse(() => buildOpenApi({ version, serverUrl: serverUrl() }))
  const documents = {
    '/openapi.json': document('application/json', () => JSON.stringify(openApi())),
    '/docs': document('text/html; charset=utf-8', () => docsPage(openApi())),
    '/docs/style.css': document('text/css; charset=utf-8', () => docsStyle),
    '/docs/try.js': document('text/javascript; charset=utf-8', () => docsScript),
  }
  for (const [path, send] of Object.entries(documents)) app.get(path, { onRequest }, send)
}

function document(type: string, make: () => string) {
  const read = onFirstUse(() => {
    const text = make()
    return { text, etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` }
  })
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const { text, etag } = read()
    reply.header('ETag', etag).header('Cache-Control', 'no-cache')
    if (type.startsWith('text/html')) reply.header('Content-Security-Policy', docsSecurityPolicy)
    if (request.headers['if-none-match'] === etag) return reply.code(304).send()
    return reply.type(type).send(text)
  }
}
