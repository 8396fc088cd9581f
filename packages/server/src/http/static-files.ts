import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { packageRoot } from '../package-root.ts'
import { onFirstUse } from './on-first-use.ts'

/** No content from other origins, no inline scripts, no eval. */
const securityPolicy = [
  "default-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}
const compressed = new Set(['.html', '.js', '.css', '.svg'])

interface StaticFile {
  content: Buffer
  gzipped: (() => Buffer) | null
  type: string
  etag: string
  /** True if the name contains a digest of the content. */
  isImmutable: boolean
}

export type SendConsolePage = (request: FastifyRequest, reply: FastifyReply) => FastifyReply

/**
 * Serves the built console's files, and its index.html for every path that the console's router handles. If
 * `isDev` is true, the page gets the mark `data-dev`. Returns the function that sends the page, for paths that
 * have their own checks.
 */
export function mountStaticFiles(app: FastifyInstance, isDev: boolean): SendConsolePage {
  const files = readFiles(join(packageRoot(), 'dist/console'), isDev)
  const sendPage: SendConsolePage = (request, reply) => {
    const page = files.get('/index.html')
    return page ? sendFile(page, request, reply) : sendHowToBuild(reply)
  }
  app.route({
    method: ['GET', 'HEAD'],
    url: '/*',
    handler: async (request, reply) => {
      const path = request.url.split('?', 1)[0]!
      if (path.startsWith('/v0.1')) return reply.callNotFound()
      const file = files.get(path)
      if (file && path !== '/index.html') return sendFile(file, request, reply)
      if (!wantsPage(path, request.headers.accept ?? '')) return reply.callNotFound()
      return sendPage(request, reply)
    },
  })
  return sendPage
}

/** Paths of the console's router. Programs other than browsers request them too, without Accept: text/html. */
const pagePath = /^\/(?:(?:sign-in|setup|accept|reset|forgot|catalogue|account|projects|fleet)(?:\/|$)|$)/

const wantsPage = (path: string, accept: string): boolean =>
  accept.includes('text/html') || (pagePath.test(path) && !accept.includes('json'))

/**
 * Reads all files into memory (a few hundred kilobytes). A file is compressed once, at its first request.
 */
function readFiles(directory: string, isDev: boolean): Map<string, StaticFile> {
  const files = new Map<string, StaticFile>()
  if (!existsSync(directory)) return files
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const extension = extname(entry.name)
    const type = types[extension]
    if (!entry.isFile() || !type) continue
    const absolute = join(entry.parentPath, entry.name)
    const path = absolute.slice(directory.length).replaceAll('\\', '/')
    const content = isDev && path === '/index.html' ? markedPage(absolute) : readFileSync(absolute)
    files.set(path, {
      content,
      gzipped: compressed.has(extension) ? onFirstUse(() => gzipSync(content)) : null,
      type,
      etag: `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`,
      isImmutable: path.startsWith('/assets/'),
    })
  }
  return files
}

/** The console shows the controls of `--dev` if its page has this mark. */
const markedPage = (path: string): Buffer =>
  Buffer.from(readFileSync(path, 'utf8').replace('<html', '<html data-dev'))

function sendFile(file: StaticFile, request: FastifyRequest, reply: FastifyReply) {
  const { content, gzipped, type, etag, isImmutable } = file
  reply
    .header('Content-Security-Policy', securityPolicy)
    .header('Cache-Control', isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache')
    .header('ETag', etag)
    .header('Vary', 'Accept, Accept-Encoding')
  if (request.headers['if-none-match'] === etag && reply.statusCode === 200) return reply.code(304).send()
  reply.type(type)
  if (gzipped && /\bgzip\b/.test(request.headers['accept-encoding'] ?? ''))
    return reply.header('Content-Encoding', 'gzip').send(gzipped())
  return reply.send(content)
}

function sendHowToBuild(reply: FastifyReply) {
  return reply
    .code(503)
    .type('text/plain; charset=utf-8')
    .send(
      'The console has not been built. Run `npm start` in the repository, or `npx vite build` in packages/console, ' +
        'and start the server again. The API works without it: see /docs.\n',
    )
}
