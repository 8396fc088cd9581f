import { startService, type TestService, useService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

/** Counts the credentials that are looked up in the database until counting is stopped. */
function countLookups({ database: { pool } }: TestService) {
  const { query } = pool
  let count = 0
  pool.query = ((config: { name?: string }) => {
    if (config.name === 'user_by_access_token') count++
    return (query as (config: unknown) => unknown).call(pool, config)
  }) as never
  return () => {
    pool.query = query
    return count
  }
}

const manyMembers = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1])))

test.each(['/v0.1/auth/token', '/v0.1/auth/accept', '/v0.1/auth/setup'])(
  'a large body without a credential is not read at %s',
  async (path) => {
    const { status, body } = await service.request('POST', path, { token: null, body: manyMembers(2_000) })
    expect([status, body]).toEqual([413, expect.objectContaining({ code: 'request_too_large' })])
  },
)

test('a console session cannot be opened with a large body', async () => {
  const headers = { origin: service.url }
  const body = manyMembers(2_000)
  expect((await service.request('POST', '/_console/session', { token: null, body, headers })).status).toBe(
    413,
  )
})

test('an object with too many fields is rejected before its fields are compared', async () => {
  const path = `/v0.1/projects/${service.credentials.project_id}/disks`
  const { status, body } = await service.request('POST', path, { body: manyMembers(1_001) })
  expect([status, body]).toEqual([
    400,
    expect.objectContaining({ message: 'An object in the body has more than 1000 fields.' }),
  ])
  const nested = JSON.stringify(Array.from({ length: 200 }, () => Array(200).fill(1)))
  expect((await service.request('POST', path, { body: nested })).body).toMatchObject({
    message: 'The body has more than 20000 values.',
  })
})

test('guessed credentials are rate-limited per client before they reach the database', async () => {
  const guarded = await useService((config) => {
    config.limits.unknownBearersPerSecond = 1
  })
  const path = '/v0.1'
  expect((await guarded.request('GET', path)).status).toBe(200)
  const stop = countLookups(guarded)
  const statuses: number[] = []
  for (let index = 0; index < 50; index++)
    statuses.push((await guarded.request('GET', path, { token: `guess-${index}` })).status)
  const lookups = stop()
  const refused = statuses.filter((status) => status === 429).length
  expect(refused).toBeGreaterThan(0)
  expect(lookups).toBe(statuses.filter((status) => status === 401).length)
  // A credential that was valid a moment ago does not count as a guess, whatever its address.
  expect((await guarded.request('GET', path)).status).toBe(200)
})

test.each(['/readyz', '/metrics', '/docs', '/openapi.json'])(
  'requests to %s count towards the rate limit of the client address',
  async (path) => {
    const few = await useService((config) => {
      // The rate is low enough that no request is regained during the test, even on a slow machine.
      config.limits.requestsPerSecond = 0.001
      config.limits.burst = 5
    })
    const statuses = []
    for (let index = 0; index < 8; index++)
      statuses.push((await few.request('GET', path, { token: null })).status)
    expect(statuses.slice(0, 5)).toEqual([200, 200, 200, 200, 200])
    expect(statuses).toContain(429)
    expect((await few.request('GET', '/healthz', { token: null })).status).toBe(200)
  },
)

test('a request through a proxy that is not in trusted_proxies is logged once', async () => {
  const headers = { 'x-forwarded-for': '203.0.113.7' }
  for (let count = 0; count < 3; count++) await service.request('GET', '/v0.1', { headers })
  const warnings = service.logLines.filter((line) => line.includes('X-Forwarded-For'))
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toContain('trusted_proxies')
})
