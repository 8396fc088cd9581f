import type { AddressInfo } from 'node:net'
import { eventually } from '@slipway/testing/eventually.ts'
import { addKey, ownerToken } from '@slipway/testing/people.ts'
import { sendRaw } from '@slipway/testing/requests.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, useService } from '@slipway/testing/service.ts'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { buildApp } from '../../src/http/app.ts'
import { Metrics } from '../../src/http/metrics/metrics.ts'

/** The rate is low enough that no request is regained during the test, even on a slow machine. */
const few = (config: TestService['config']) => {
  config.limits.requestsPerSecond = 0.001
  config.limits.burst = 5
}
const ask = (service: TestService, token: string | null, headers: Record<string, string> = {}) =>
  service.request('GET', '/v0.1', { token, headers })

test('the rate limit allows a burst, then returns 429 with the time to retry', async () => {
  const service = await useService(few)
  const { access_key, operator_key } = service.credentials
  const responses = []
  for (let i = 0; i < 8; i++) responses.push(await ask(service, access_key))
  const refused = responses.filter(({ status }) => status === 429)
  expect(responses.slice(0, 5).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect(responses[0]!.headers.get('ratelimit-limit')).toBe('5')
  expect(responses[0]!.headers.get('ratelimit-remaining')).toBe('4')
  expect(refused.length).toBeGreaterThan(0)
  for (const { headers, body } of refused) {
    expect(body).toMatchObject({ code: 'rate_limited' })
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(headers.get('ratelimit-remaining')).toBe('0')
  }
  // Another caller has a separate limit.
  expect((await ask(service, operator_key)).status).toBe(200)
})

test('the rate limit counts unauthenticated callers by their address', async () => {
  const service = await useService(few)
  const statuses = []
  for (let i = 0; i < 8; i++) statuses.push((await ask(service, `guess-${i}`)).status)
  expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401])
  expect(statuses).toContain(429)
  expect((await ask(service, service.credentials.access_key)).status).toBe(200)
})

test('the rate limit also counts unknown paths', async () => {
  const service = await useService(few)
  const statuses = []
  for (let i = 0; i < 8; i++) statuses.push((await service.request('GET', `/v0.1/nothing-${i}`)).status)
  expect(statuses).toContain(429)
  expect((await service.request('GET', '/healthz')).status).toBe(200)
})

test('the rate limit uses a forwarded address only from a trusted proxy', async () => {
  const trusting = await useService((config) => {
    few(config)
    config.server.trustedProxies = ['127.0.0.0/8']
  })
  const limited = await useService(few)
  const through = async (service: TestService) => {
    const statuses = []
    for (let i = 0; i < 8; i++)
      statuses.push((await ask(service, null, { 'x-forwarded-for': `203.0.113.${i}` })).status)
    return new Set(statuses)
  }
  expect(await through(trusting)).toEqual(new Set([401]))
  expect(await through(limited)).toEqual(new Set([401, 429]))
})

async function listen(service: TestService) {
  const app = buildApp(service.server.services, pino({ level: 'silent' })).fastify
  onTestFinished(() => app.close())
  const { server } = app
  const patience = [server.headersTimeout, server.requestTimeout]
  // The test shortens the times of these limits.
  server.headersTimeout = 200
  server.requestTimeout = 400
  Object.assign(server, { connectionsCheckingInterval: 50 })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const connections = () => new Promise<number>((done) => server.getConnections((_, open) => done(open)))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, patience, connections }
}

test.each([
  ['headers', 'GET /v0.1 HTTP/1.1\r\nHost: x\r\nX-Slow: '],
  [
    'a body',
    'POST /v0.1/auth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
  ],
])('a slow client that does not finish %s gets a response and is disconnected', async (_name, half) => {
  const service = await useService()
  const { url, patience, connections } = await listen(service)
  expect(patience).toEqual([10_000, 30_000])
  const { status, text } = await sendRaw(url, half)
  expect([status, JSON.parse(text).code]).toEqual([400, 'invalid_argument'])
  await eventually(async () => (await connections()) === 0)
})

test('a stopping server completes requests in progress and ends long polls', async () => {
  const service = await useService((config) => {
    for (const location of config.locations)
      if (location.engine === 'simulated') location.simulated.bootMs = [60_000, 60_000]
  })
  const { operation } = await service.ok('vmCreate', { body: vmBody() })
  const waiting = service
    .call('operationGet', { params: { operation_id: operation.operation_id }, query: { wait: 60 } })
    .catch((error) => error)
  const holder = new pg.Client({ connectionString: service.databaseUrl })
  await holder.connect()
  await holder.query('BEGIN; LOCK TABLE images IN ACCESS EXCLUSIVE MODE')
  const asked = service.call('imageList')
  await eventually(async () => {
    const { rowCount } = await holder.query(
      `SELECT FROM pg_locks WHERE NOT granted AND relation = 'images'::regclass
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    )
    return rowCount === 1
  })
  const closed = service.server.close()
  await holder.query('COMMIT')
  await holder.end()
  expect((await asked).status).toBe(200)
  expect(await waiting).toMatchObject({ code: 'ECONNRESET' })
  await closed
})

describe('health, metrics, documents and the log', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startService()
  })
  afterAll(() => service.close())

  test('the health endpoints show load balancers the state of the service', async () => {
    const token = null
    expect(await service.request('GET', '/healthz', { token })).toMatchObject({
      status: 200,
      body: { status: 'ok' },
    })
    expect(await service.request('GET', '/readyz', { token })).toMatchObject({
      status: 200,
      body: { status: 'ready' },
    })
  })

  test('the metrics count requests by route, and show the pool, the event loop and operations', async () => {
    await service.call('vmList')
    await service.call('vmList')
    await service.call('vmGet', { params: { vm_id: service.credentials.project_id } })
    await service.request('GET', '/no/such/path/with-a-secret')
    const { body, headers } = await service.request('GET', '/metrics', { token: null })
    expect(headers.get('content-type')).toMatch(/^text\/plain/)
    expect(body).toContain('slipway_http_requests_total{route="vmList",status="200"} 2')
    expect(body).toContain('slipway_http_requests_total{route="vmGet",status="404"} 1')
    expect(body).toContain('slipway_http_requests_total{route="none",status="404"} 1')
    expect(body).toMatch(/slipway_http_request_seconds_count\{route="vmList"\} 2/)
    for (const name of ['slipway_pool_connections', 'slipway_operations_in_progress', 'nodejs_eventloop_lag'])
      expect(body).toContain(name)
    expect(body).not.toContain('with-a-secret')
    expect(body).not.toContain(service.credentials.project_id)
  })

  test('the duration histogram of a route has cumulative buckets, a count and a sum', async () => {
    const metrics = new Metrics(service.server.services)
    for (const seconds of [0.001, 0.002, 0.3, 20]) metrics.observe('vmGet', 200, seconds)
    metrics.observe('vmList', 200, 0.004)
    const shown = (await metrics.registry.metrics()).split('\n')
    const within = (most: string) => `slipway_http_request_seconds_bucket{le="${most}",route="vmGet"}`
    expect(shown).toEqual(
      expect.arrayContaining([
        '# TYPE slipway_http_request_seconds histogram',
        `${within('0.001')} 1`,
        `${within('0.0025')} 2`,
        `${within('0.25')} 2`,
        `${within('0.5')} 3`,
        `${within('10')} 3`,
        `${within('+Inf')} 4`,
        'slipway_http_request_seconds_sum{route="vmGet"} 20.303',
        'slipway_http_request_seconds_count{route="vmGet"} 4',
        'slipway_http_request_seconds_count{route="vmList"} 1',
        'slipway_http_requests_total{route="vmGet",status="200"} 4',
      ]),
    )
  })

  test('metrics are served to local clients, and through a proxy only with the token', async () => {
    const guarded = await useService((config) => {
      config.server.metricsToken = 'metrics-secret'
    })
    const proxied = { 'x-forwarded-for': '203.0.113.7' }
    const metrics = async (from: TestService, token: string | null, headers = {}) =>
      (await from.request('GET', '/metrics', { token, headers })).status
    expect(await metrics(service, null)).toBe(200)
    expect(await metrics(service, null, proxied)).toBe(401)
    expect(await metrics(service, '', proxied)).toBe(401)
    expect(await metrics(guarded, null)).toBe(200)
    expect(await metrics(guarded, null, proxied)).toBe(401)
    expect(await metrics(guarded, 'metrics-secre', proxied)).toBe(401)
    expect(await metrics(guarded, 'metrics-secret', proxied)).toBe(200)
  })

  test('the OpenAPI document and the docs page are served without a credential', async () => {
    const { body } = await service.request('GET', '/openapi.json', { token: null })
    expect(body).toMatchObject({ openapi: expect.stringMatching(/^3\.1/), servers: [{ url: service.url }] })
    const page = await service.request('GET', '/docs', { token: null })
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  })

  test('every request is logged once, without secrets', async () => {
    const { email, password, access_key, operator_key, project_id } = service.credentials
    const token = await ownerToken(service)
    const grant = { grant_type: 'password', email, password }
    const { access_token, refresh_token } = await service.ok('authToken', { token: null, body: grant })
    const { secret } = await addKey(service, token, project_id, 'write')
    await service.call('rootGet', { token: operator_key })
    await service.call('authToken', { token: null, body: { ...grant, password: 'a-wrong-guess' } })
    await service.call('authToken', { token: null, body: { grant_type: 'refresh_token', refresh_token } })
    await service.call('authRevoke', { token: null, body: { refresh_token } })
    await service.call('authSetup', {
      token: null,
      body: { code: 'a-setup-code', email: 'x@example.com', password: 'a-new-password' },
    })
    const invited = await service.ok('memberCreate', {
      token,
      body: { email: 'new@example.com', role: 'viewer' },
    })
    await service.request('GET', '/v0.1?token=in-the-query', { token: secret })
    await service.request('GET', '/v0.1', { token: 'not-even-a-key' })
    await service.call('vmList', { headers: { 'idempotency-key': 'an-idempotency-key' } })
    const log = await eventually(async () => {
      const text = service.logLines.join('')
      return text.includes('"vmList"') && text
    })
    const code = invited.invite_url.split('#code=')[1]!
    const secrets = [
      ...[password, access_key, operator_key, token, access_token, refresh_token, secret, code],
      ...['a-wrong-guess', 'a-setup-code', 'a-new-password', 'in-the-query', 'not-even-a-key'],
      ...['an-idempotency-key', 'postgresql://'],
    ]
    for (const text of secrets) expect(log).not.toContain(text)
    const [line] = log.split('\n').filter((text) => text.includes('"vmList"'))
    expect(JSON.parse(line!)).toMatchObject({
      msg: 'request',
      route: 'vmList',
      method: 'GET',
      status: 200,
      caller: expect.stringMatching(/^access_key:/),
    })
  })

  test('the log line of a request is one line of JSON for any request id and path', async () => {
    const id = 'a"name\\of,"status":500'
    const path = '/v0.1/"none\\"'
    const head = `GET ${path}?secret HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\nConnection: close\r\n\r\n`
    expect((await sendRaw(service.url, head)).status).toBe(404)
    const line = await eventually(async () => service.logLines.find((text) => text.includes('a\\"name')))
    expect(JSON.parse(line)).toEqual({
      level: 30,
      time: expect.any(Number),
      pid: process.pid,
      hostname: expect.any(String),
      request: id,
      route: 'none',
      method: 'GET',
      path,
      status: 404,
      ms: expect.any(Number),
      caller: '',
      client: '127.0.0.1',
      msg: 'request',
    })
  })
})
