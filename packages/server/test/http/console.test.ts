import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(async () => {
  await service?.close()
})

interface Ask {
  cookie?: string
  origin?: string | null
  body?: unknown
}

async function session(method: string, { cookie = '', origin = service.url, body }: Ask = {}) {
  const response = await fetch(`${service.url}/_console/session`, {
    method,
    headers: {
      ...(origin !== null && { origin }),
      ...(cookie && { cookie }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const set = response.headers.get('set-cookie') ?? ''
  const answer = (await response.json()) as { access_token?: string; refresh_token?: string; code?: string }
  return { status: response.status, set, cookie: set.split(';')[0] ?? '', answer }
}

const signIn = () => {
  const { email, password } = service.credentials
  return session('POST', { body: { email, password } })
}
const whoAmI = async (token = '') =>
  (await fetch(`${service.url}/v0.1`, { headers: { authorization: `Bearer ${token}` } })).status

test('a console session gives the page an access token and keeps the refresh token in a cookie with its own path', async () => {
  const { status, set, answer } = await signIn()
  expect(status).toBe(200)
  expect(await whoAmI(answer.access_token)).toBe(200)
  expect(answer.refresh_token).toBeUndefined()
  expect(set).toMatch(
    /^slipway_session_\d+=\S+; Max-Age=\d+; Path=\/_console\/session; HttpOnly; SameSite=Strict$/,
  )
})

test('a console session is refreshed with the cookie, which changes each time', async () => {
  const first = await signIn()
  const second = await session('POST', { cookie: first.cookie })
  expect(second.status).toBe(200)
  expect(second.cookie).not.toBe(first.cookie)
  expect(await whoAmI(second.answer.access_token)).toBe(200)
})

test('DELETE ends a console session: neither the token nor the cookie works afterwards', async () => {
  const { cookie, answer } = await signIn()
  const ended = await session('DELETE', { cookie })
  expect(ended.status).toBe(200)
  expect(ended.set).toContain('Max-Age=0')
  expect(await whoAmI(answer.access_token)).toBe(401)
  expect(await session('POST', { cookie })).toMatchObject({
    status: 401,
    answer: { code: 'unauthenticated' },
  })
})

test('a console session is refused to other origins, and to callers without an origin', async () => {
  const { cookie } = await signIn()
  for (const origin of ['https://evil.example', 'null', `${service.url}1`, null]) {
    const refused = await session('POST', { cookie, origin })
    expect(refused).toMatchObject({ status: 403, set: '', answer: { code: 'permission_denied' } })
  }
})

test('a console session gets the responses of the token endpoints for a wrong password and a wrong code', async () => {
  const { email } = service.credentials
  const wrong = [
    { email, password: 'wrong' },
    { code: 'slpc_wrong', password: 'long-enough' },
    { nonsense: 1 },
  ]
  const answers = await Promise.all(wrong.map((body) => session('POST', { body })))
  expect(answers.map(({ status, answer }) => [status, answer.code])).toEqual([
    [400, 'invalid_grant'],
    [400, 'invalid_grant'],
    [400, 'invalid_argument'],
  ])
})

test('a console session cannot be refreshed without a cookie', async () => {
  expect(await session('POST')).toMatchObject({ status: 401, answer: { code: 'unauthenticated' } })
})

const get = (path: string, accept = 'text/html') => fetch(service.url + path, { headers: { accept } })

test('every console path serves the same page, with a strict content security policy', async () => {
  for (const path of ['/', '/projects/x/vms?state=STATE_RUNNING', '/fleet/hosts/y', '/accept?code=z']) {
    const response = await get(path)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/html')
    const policy = response.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'self'")
    expect(policy).not.toMatch(/unsafe|data:|https?:|\*/)
    expect(response.headers.get('cache-control')).toBe('no-cache')
  }
})

test('a client that accepts any type gets the console page, and one that asks for JSON gets an error', async () => {
  const paths = [
    '/',
    '/setup',
    '/sign-in',
    '/accept',
    '/reset',
    '/forgot',
    '/catalogue',
    '/projects/x/vms',
    '/fleet',
  ]
  for (const accept of ['*/*', 'text/plain, */*;q=0.1', 'text/html,application/json'])
    for (const path of paths) {
      const page = await get(path, accept)
      expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    }
  for (const accept of ['application/json', 'application/problem+json, */*;q=0.1']) {
    const error = await get('/setup', accept)
    expect([error.status, await error.json()]).toMatchObject([404, { code: 'not_found' }])
  }
})

test('console files have no inline scripts or styles and are cached permanently by their digest', async () => {
  const page = await (await get('/')).text()
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=/)
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)?.[1] ?? ''
  const response = await get(script, '*/*')
  expect(response.headers.get('content-type')).toContain('text/javascript')
  expect(response.headers.get('cache-control')).toContain('immutable')
  const again = await fetch(service.url + script, {
    headers: { 'if-none-match': response.headers.get('etag')! },
  })
  expect(again.status).toBe(304)
})

test('API paths and missing files get their own errors instead of the console page', async () => {
  const answers = await Promise.all(
    [
      get('/v0.1/nothing'),
      get('/nothing', '*/*'),
      get('/v0.1/auth/token'),
      get('/assets/none.js', '*/*'),
      get('/nothing', 'application/json'),
    ].map(async (answer) => [
      (await answer).status,
      ((await (await answer).json()) as { code: string }).code,
    ]),
  )
  expect(answers).toEqual([
    [404, 'not_found'],
    [404, 'not_found'],
    [405, 'method_not_allowed'],
    [404, 'not_found'],
    [404, 'not_found'],
  ])
})

test('console files are never served from outside the build folder', async () => {
  for (const path of [
    '/..%2f..%2fpackage.json',
    '/assets/..%2f..%2f..%2fserver%2fpackage.json',
    '/.source-hash',
  ])
    expect((await get(path, '*/*')).status).toBe(404)
})
