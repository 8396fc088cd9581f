import fastify from 'fastify'
import { expect, test } from 'vitest'
import { mountDocs } from '../../src/http/docs/mount.ts'
import { RateLimiter } from '../../src/http/limits/rate-limit.ts'

const app = fastify()
const limiter = new RateLimiter({ requestsPerSecond: 1_000, burst: 1_000 })
mountDocs(app, { version: '1.2.3', serverUrl: () => 'http://127.0.0.1:4321' }, limiter)

test('the OpenAPI document contains the running version and its URL', async () => {
  const response = await app.inject('/openapi.json')
  expect(response.headers['content-type']).toMatch(/^application\/json/)
  expect(response.json()).toMatchObject({
    openapi: '3.1.0',
    info: { version: '1.2.3' },
    servers: [{ url: 'http://127.0.0.1:4321' }],
  })
})

test('the content security policy of the docs page allows only its style sheet', async () => {
  const page = await app.inject('/docs')
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
  expect(page.headers['content-security-policy']).toContain("default-src 'none'; style-src 'self'")
  const style = await app.inject('/docs/style.css')
  expect(style.headers['content-type']).toBe('text/css; charset=utf-8')
})

test('a browser that already has the docs page gets 304', async () => {
  const first = await app.inject('/docs')
  const again = await app.inject({ url: '/docs', headers: { 'if-none-match': String(first.headers.etag) } })
  expect(again.statusCode).toBe(304)
  expect(again.body).toBe('')
})
