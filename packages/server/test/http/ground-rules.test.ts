import { routeIds, routeOf } from '@slipway/contract'
import { addKey, addProject, ownerToken } from '@slipway/testing/people.ts'
import { sendRaw } from '@slipway/testing/requests.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

let service: TestService
let owner: string
let readKey: string
const nowhere = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'

beforeAll(async () => {
  service = await startService()
  const { project_id } = service.credentials
  owner = await ownerToken(service)
  readKey = (await addKey(service, owner, project_id, 'read')).secret
})
afterAll(() => service.close())

const projectPath = (rest: string) => `/v0.1/projects/${service.credentials.project_id}${rest}`

/** Returns the status together with the error code. */
async function outcome(method: string, path: string, options: Parameters<TestService['request']>[2] = {}) {
  const { status, body } = await service.request(method, path, options)
  return [status, (body as { code?: string }).code]
}

const rawHead = (path: string, token: string, more: string[] = []) =>
  [`GET ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`, ...more, '', ''].join('\r\n')

const badBody = { body: '{"unknown": 1}' }

test('401 comes before everything', async () => {
  expect(await outcome('POST', `/v0.1/projects/${nowhere}/vms`, { token: null, ...badBody })).toEqual([
    401,
    'unauthenticated',
  ])
})
test('404 comes before 403, 402 and 400', async () => {
  expect(await outcome('POST', `/v0.1/projects/${nowhere}/vms`, { token: readKey, ...badBody })).toEqual([
    404,
    'not_found',
  ])
})
test('403 comes before 402 and 400, and 402 before 400', async () => {
  const { organization_id } = service.credentials
  const other = await service.another()
  const payment = (state: string) =>
    service.sql('UPDATE organizations SET payment_state = $2 WHERE id = $1', [organization_id, state])
  await payment('declined')
  // A process that has not read this project before sees the change immediately.
  const ask = async (token: string) => {
    const response = await fetch(`${other.url}${projectPath('/vms')}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: badBody.body,
    })
    return response.status
  }
  expect([await ask(readKey), await ask(service.credentials.access_key)]).toEqual([403, 402])
  await payment('active')
})
test('400 comes before 409', async () => {
  const body = vmBody()
  await service.ok('vmCreate', { body })
  expect(await service.call('vmCreate', { body })).toMatchObject({ status: 409 })
  expect(await service.call('vmCreate', { body: { ...body, unknown: 1 } })).toMatchObject({ status: 400 })
})
test('401 comes before 413, 415 and a malformed body', async () => {
  const token = null
  for (const options of [
    { body: 'x'.repeat(2 ** 20 + 1) },
    { body: '{' },
    { body: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
  ])
    expect(await outcome('POST', '/v0.1/projects', { token, ...options })).toEqual([401, 'unauthenticated'])
})

const post = (body: string | Buffer, headers: Record<string, string> = {}) =>
  service.request('POST', projectPath('/disks'), { body: body as string, headers })
const refused = (field: string) => ({
  status: 400,
  body: { code: 'invalid_argument', details: [{ field }] },
})
const disk = { name: 'data', size: '10GiB', location: 'us-east1-a' }

test('a request body with an unknown field is rejected, and the field is named', async () => {
  expect(await post(JSON.stringify({ ...disk, colour: 'red' }))).toMatchObject(refused('/colour'))
  expect(await post('{"__proto__": {"size": "1GiB"}}')).toMatchObject({ status: 400 })
})
test('a request body with a missing field is rejected, and the field is named', async () => {
  expect(await post(JSON.stringify({ ...disk, size: undefined }))).toMatchObject(refused('/size'))
})
test.each([
  ['name', 5],
  ['size', 10],
  ['block_size', '512'],
  ['block_size', true],
  ['location', null],
  ['location', ['us-east1-a']],
  ['name', { toString: 'data' }],
])('a request body with %s as %j is rejected: nothing is coerced', async (member, value) => {
  expect(await post(JSON.stringify({ ...disk, [member]: value }))).toMatchObject(refused(`/${member}`))
})
test.each(['null', '[]', '"text"', '5', 'true'])('a request body that is %s is rejected', async (text) => {
  expect(await post(text)).toMatchObject({ status: 400, body: { code: 'invalid_argument' } })
})
test.each([
  ['malformed', '{"name": '],
  ['with a comment', '{} // hello'],
  ['with single quotes', "{'name': 'data'}"],
  ['in invalid UTF-8', Buffer.concat([Buffer.from('{"name": "'), Buffer.from([0xc3, 0x28, 0x22, 0x7d])])],
  ['with an encoded lone surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
  ['in UTF-16', Buffer.from(JSON.stringify(disk), 'utf16le')],
  ['with a NUL in a string', JSON.stringify({ ...disk, name: 'a\0b' })],
  ['with a NUL in a name', '{"a\\u0000b": 1}'],
  ['with half a surrogate pair', '{"name": "\\ud800", "size": "10GiB", "location": "us-east1-a"}'],
  ['of 100,000 nested arrays', '['.repeat(100_000) + ']'.repeat(100_000)],
  ['of 100,000 nested arrays that are not closed', '['.repeat(100_000)],
  ['of nested objects inside a known field', `{"name": ${'{"a":'.repeat(1000)}1${'}'.repeat(1000)}}`],
])('a request body %s is rejected', async (_name, text) => {
  expect(await post(text)).toMatchObject({ status: 400, body: { code: 'invalid_argument' } })
})
test('a missing request body is rejected', async () => {
  expect(await outcome('POST', projectPath('/disks'))).toEqual([400, 'invalid_argument'])
  expect(await post('')).toMatchObject({ status: 400 })
})
test('a request body of exactly 1 MiB is accepted, and one byte more is rejected', async () => {
  const text = JSON.stringify(disk)
  const padded = (bytes: number) => text + ' '.repeat(bytes - text.length)
  expect(await post(padded(2 ** 20))).toMatchObject({ status: 200 })
  expect(await post(padded(2 ** 20 + 1))).toMatchObject({
    status: 413,
    body: { code: 'request_too_large' },
  })
})
test('a request body without the JSON content type is rejected', async () => {
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'x',
  ])
    expect(await post(JSON.stringify(disk), { 'content-type': type })).toMatchObject({
      status: 415,
      body: { code: 'unsupported_media_type' },
    })
})
test('a request body is accepted with a charset in its content type', async () => {
  const type = 'application/json; charset=utf-8'
  expect(await post(JSON.stringify({ ...disk, name: 'charset' }), { 'content-type': type })).toMatchObject({
    status: 200,
  })
})
test('a request body must be empty where the route takes none', async () => {
  const path = projectPath(`/disks/${nowhere}`)
  expect(await outcome('DELETE', path, { body: '{"force": true}' })).toEqual([400, 'invalid_argument'])
  expect(await outcome('DELETE', path, { body: '{}' })).toEqual([404, 'not_found'])
})
test('a request body of a GET is ignored', async () => {
  const body = '{"limit": 1}'
  const request = rawHead(projectPath('/vms'), service.credentials.access_key, [
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ])
  expect((await sendRaw(service.url, request + body)).status).toBe(200)
})

test.each(['1', 'null', '..', `{${nowhere}}`, nowhere.replaceAll('-', ''), '%00', 'é'])(
  'a path id of the form %s is rejected',
  async (id) => {
    const path = projectPath(`/vms/${encodeURIComponent(decodeURIComponent(id))}`)
    // Client libraries remove '..' from a path.
    const { status } = await sendRaw(
      service.url,
      rawHead(path.replace('/vms/..', '/vms/%2e%2e'), service.credentials.access_key, ['Connection: close']),
    )
    expect(status).toBe(400)
  },
)
test('a path id that cannot be decoded gets a standard error', async () => {
  expect(await outcome('GET', projectPath('/vms/%zz'))).toEqual([400, 'invalid_argument'])
})
test('a path id that is far too long gets a standard error', async () => {
  expect(await outcome('GET', projectPath(`/vms/${'a'.repeat(5000)}`))).toEqual([400, 'invalid_argument'])
})
test('a path id of another kind of resource is not found', async () => {
  const { operation } = await service.ok('diskCreate', {
    body: { name: 'other-kind', size: '1GiB', location: 'us-east1-a' },
  })
  const diskId = operation.metadata.id
  for (const path of [`/vms/${diskId}`, `/vpc/networks/${diskId}`, `/operations/${diskId}`])
    expect(await outcome('GET', projectPath(path))).toEqual([404, 'not_found'])
  expect(await outcome('GET', projectPath(`/vms/operations/${operation.operation_id}`))).toEqual([
    404,
    'not_found',
  ])
  expect(await outcome('GET', projectPath(`/disks/operations/${operation.operation_id}`))).toEqual([
    200,
    undefined,
  ])
})
test('a project id that is not a UUID is rejected after authentication', async () => {
  expect(await outcome('GET', '/v0.1/projects/mine/vms')).toEqual([400, 'invalid_argument'])
  expect(await outcome('GET', '/v0.1/projects/mine/vms', { token: null })).toEqual([401, 'unauthenticated'])
})

test.each(['0', '-1', '501', '1.5', 'ten', 'NaN', '%00', '1,2'])(
  'a query with limit=%s is rejected',
  async (limit) => {
    expect(await outcome('GET', projectPath(`/vms?limit=${limit}`))).toEqual([400, 'invalid_argument'])
  },
)
test.each(['1', '500'])('a query with limit=%s is accepted', async (limit) => {
  expect(await outcome('GET', projectPath(`/vms?limit=${limit}`))).toEqual([200, undefined])
})
test('a query with a repeated or unknown parameter is rejected', async () => {
  expect(await outcome('GET', projectPath('/vms?limit=1&limit=2'))).toEqual([400, 'invalid_argument'])
  expect(await outcome('GET', projectPath('/vms?colour=red'))).toEqual([400, 'invalid_argument'])
  expect(await outcome('GET', '/v0.1?colour=red')).toEqual([400, 'invalid_argument'])
})
test('a query with a NUL or broken encoding in a filter is harmless', async () => {
  expect(await outcome('GET', projectPath('/vms?names=a%00b'))).toEqual([400, 'invalid_argument'])
  for (const filter of ['names=%zz', 'names=%ff%fe', 'ids=not-a-uuid'])
    expect([200, 400]).toContain((await outcome('GET', projectPath(`/vms?${filter}`)))[0])
})

describe('a page token', () => {
  const page = (list: string, token: string, project = service.credentials.project_id) =>
    outcome('GET', `/v0.1/projects/${project}/${list}?page_token=${encodeURIComponent(token)}`, {
      token: owner,
    })
  let token: string
  beforeAll(async () => {
    for (const name of ['one', 'two', 'three'])
      await service.ok('diskCreate', { body: { name: `page-${name}`, size: '1GiB', location: 'us-east1-a' } })
    token = (await service.ok('diskList', { query: { limit: 1 } })).next_page_token
  })

  test('page tokens lead through the whole list, newest first, without gaps', async () => {
    const whole = (await service.ok('diskList')).items.map(({ id }) => id)
    const collected: string[] = []
    let next = ''
    do {
      const query = { limit: 2, ...(next && { page_token: next }) }
      const { items, next_page_token } = await service.ok('diskList', { query })
      collected.push(...items.map(({ id }) => id))
      next = next_page_token
    } while (next)
    expect(collected).toEqual(whole)
    expect(collected.length).toBeGreaterThan(2)
    expect(collected.toSorted().toReversed()).toEqual(collected)
  })
  test('a page token works only in its own list', async () => {
    expect(await page('disks', token)).toEqual([200, undefined])
    expect(await page('vms', token)).toEqual([400, 'invalid_argument'])
    const elsewhere = await addProject(service, owner, service.credentials.organization_id, 'pages')
    expect(await page('disks', token, elsewhere)).toEqual([400, 'invalid_argument'])
  })
  test('an invalid page token is rejected', async () => {
    const flip = (at: number) => token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
    const garbled = [
      flip(0),
      flip(token.length >> 1),
      `${token}A`,
      `${token}!`,
      `${token}=`,
      token.slice(1),
      'x',
      ' ',
    ]
    for (const text of garbled) expect(await page('disks', text), text).toEqual([400, 'invalid_argument'])
  })
  test('an empty page token means the first page', async () => {
    expect(await page('disks', '')).toEqual([200, undefined])
  })
})

test.each(['/v0.1/nothing', '/v0.2', '/nothing', '//v0.1', '/v0.1/admin'])(
  'the unknown path %s gets a standard error',
  async (path) => {
    const { status, text, headers } = await sendRaw(
      service.url,
      rawHead(path, service.credentials.access_key, ['Connection: close']),
    )
    expect([status, JSON.parse(text)]).toMatchObject([404, { code: 'not_found' }])
    expect(headers.get('content-type')).toMatch(/^application\/json/)
  },
)
test('an unsupported method gets 405 and the list of allowed methods', async () => {
  const table = routeIds.map(routeOf)
  for (const path of new Set(table.map((route) => route.path))) {
    const known = table.filter((route) => route.path === path).map(({ method }) => method)
    const unknown = (['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).find((m) => !known.includes(m))!
    const { status, headers } = await service.request(
      unknown,
      path.replace(/\{\w+\}/g, nowhere),
      unknown === 'GET' ? {} : { body: '{}' },
    )
    // `operations` or `test` at the end of a path can also be read as an id, and the path of a single resource
    // allows other methods.
    if (/\/(operations|test)$/.test(path)) expect([400, 404, 405], path).toContain(status)
    else
      expect([status, ...headers.get('allow')!.split(', ').toSorted()], `${unknown} ${path}`).toEqual([
        405,
        ...known.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).toSorted(),
      ])
  }
})
test.each(['OPTIONS', 'PROPFIND'])('the method %s gets 405', async (method) => {
  for (const path of [projectPath('/vms'), '/healthz', '/openapi.json']) {
    const head = rawHead(path, service.credentials.access_key, ['Connection: close']).replace('GET', method)
    const { status, headers } = await sendRaw(service.url, head)
    expect([status, headers.get('allow')?.includes('GET')], path).toEqual([405, true])
  }
})
test('a page of another origin gets no CORS header', async () => {
  const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
  for (const method of ['GET', 'OPTIONS']) {
    const response = await service.request(method, projectPath('/vms'), { headers })
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  }
})

const paths = [
  '/v0.1',
  '/v0.1/nothing',
  '/healthz',
  '/readyz',
  '/metrics',
  '/openapi.json',
  '/docs',
  '/v0.1/projects/x',
]

test.each(paths)(
  'every response of %s has its request id, the caller’s rate limit and safe headers',
  async (path) => {
    const { headers } = await service.request('GET', path)
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    for (const name of ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'])
      expect(headers.get(name), name).toMatch(/^\d+$/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(headers.get('server') ?? headers.get('x-powered-by')).toBeNull()
  },
)
test('a response keeps the caller’s request id if it is short and printable', async () => {
  for (const id of ['my-request', '!', '~'.repeat(128)]) {
    const { headers } = await service.request('GET', '/v0.1/nothing', { headers: { 'x-request-id': id } })
    expect(headers.get('x-request-id')).toBe(id)
  }
  for (const id of ['with space', '~'.repeat(129), 'é']) {
    const { headers, body } = await service.request('GET', '/v0.1/nothing', {
      headers: { 'x-request-id': id },
    })
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(body).toMatchObject({ request_id: headers.get('x-request-id') })
  }
})
test('a response that contains a secret is not cacheable', async () => {
  for (const id of routeIds.filter((id) => routeOf(id).noStore)) {
    const body = routeOf(id).method === 'GET' ? {} : { body: {} }
    const { headers } = await service.call(id, { ...body, token: owner, params: { webhook_id: nowhere } })
    expect(headers.get('cache-control'), id).toBe('no-store')
  }
})

test.each([
  ['headers over 16 KiB', () => rawHead('/v0.1', 'x', [`X-Filler: ${'x'.repeat(17_000)}`])],
  ['a line that is not HTTP', () => 'HELLO\r\n\r\n'],
  [
    'two lengths',
    () => 'POST /v0.1/projects HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}',
  ],
  ['a header with a NUL', () => rawHead('/v0.1', 'x', ['X-Odd: a\0b'])],
])(
  'a request that Node itself rejects (%s) gets a standard error, and the connection is closed',
  async (_name, request) => {
    const { status, text, headers } = await sendRaw(service.url, request())
    expect([status, JSON.parse(text)]).toMatchObject([400, { code: 'invalid_argument' }])
    expect(JSON.parse(text).request_id).toBe(headers.get('x-request-id'))
  },
)
test('request headers just under 16 KiB are accepted', async () => {
  const filler = ['Connection: close', `X-Filler: ${'x'.repeat(15_500)}`]
  const head = rawHead('/v0.1', service.credentials.access_key, filler)
  expect((await sendRaw(service.url, head)).status).toBe(200)
})
