import { routeIds, routeOf } from '@slipway/contract'
import { type ApiError, type ClientOptions, createClient } from '@slipway/sdk'
import {
  answer,
  breakOff,
  failure,
  hangUp,
  scriptedServer,
  silence,
} from '@slipway/testing/scripted-server.ts'
import { afterEach, expect, test } from 'vitest'
import { routePaths } from '../src/route-paths.ts'

const project_id = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'
const vm_id = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e11'
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function connectTo(
  replies: Parameters<typeof scriptedServer>,
  options: Omit<ClientOptions, 'baseUrl'> = {},
) {
  const server = await scriptedServer(...replies)
  closers.push(server.close)
  return { server, client: createClient({ baseUrl: server.url, token: 'key', retryPauseMs: 1, ...options }) }
}

const failureOf = (promise: Promise<unknown>): Promise<ApiError> =>
  promise.then(
    () => expect.fail('the call succeeded'),
    (error) => error,
  )

test('every route has a client method and a matching entry in routePaths', () => {
  const client = createClient({ baseUrl: 'http://127.0.0.1:1' })
  for (const id of routeIds) {
    const { method, path, body, isPaged, opensTransactions, isText } = routeOf(id)
    const marks = [
      ...[body && 'body', isPaged && 'paged', opensTransactions && 'session', isText && 'text'],
    ].filter(Boolean)
    expect(routePaths[id]).toBe([method, path, ...marks].join(' '))
    expect(client[id]).toBeTypeOf('function')
  }
  expect(Object.keys(routePaths)).toHaveLength(routeIds.length)
})

test('no path parameter has the name of a query parameter', () => {
  for (const id of routeIds) {
    const { path, query } = routeOf(id)
    for (const name of Object.keys(query?.properties ?? {})) expect(path).not.toContain(`{${name}}`)
  }
})

test('a target fills the path and the query, and undefined values are left out', async () => {
  const { server, client } = await connectTo([answer(200, { items: [], next_page_token: '' })])
  await client.vmList({ project_id, states: 'STATE_RUNNING', names: 'a b&c', types: undefined })
  expect(server.requests[0]?.path).toBe(`/v0.1/projects/${project_id}/vms?states=STATE_RUNNING&names=a+b%26c`)
  expect(server.requests[0]?.headers.authorization).toBe('Bearer key')
})

test('a read is retried after 429, 503, a refused connection and an incomplete response', async () => {
  const { server, client } = await connectTo(
    [
      failure(429, 'rate_limited', { 'retry-after': '0' }),
      failure(503, 'unavailable'),
      hangUp,
      breakOff,
      answer(200, []),
    ],
    { retries: 4 },
  )
  expect(await client.projectList()).toEqual([])
  expect(server.requests).toHaveLength(5)
})

test('a write is retried with one idempotency key, and each call has a new key', async () => {
  const operation = { operation: {} }
  const { server, client } = await connectTo([hangUp, failure(500, 'internal_error'), answer(200, operation)])
  await client.vmUpdate({ project_id, vm_id }, { action: 'STOP' })
  await client.vmUpdate({ project_id, vm_id }, { action: 'STOP' })
  const keys = server.requests.map((request) => request.headers['idempotency-key'])
  expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
  expect(keys.slice(0, 3)).toEqual([keys[0], keys[0], keys[0]])
  expect(keys[3]).not.toBe(keys[0])
  expect(server.requests[0]?.body).toBe('{"action":"STOP"}')
})

test('a write with an unknown outcome is repeated with its key, and finally reported as unknown', async () => {
  const unknown = answer(503, {
    ...{ code: 'unavailable', message: 'It is unknown.', request_id: 'r-1' },
    details: { outcome: 'unknown' },
  })
  const { server, client } = await connectTo([unknown, unknown], { retries: 1 })
  const error = await failureOf(client.vmDelete({ project_id, vm_id }))
  expect(error).toMatchObject({ code: 'unavailable', isOutcomeUnknown: true, details: [] })
  const [first, second] = server.requests.map((request) => request.headers['idempotency-key'])
  expect(second).toBe(first)
})

test("a caller's own idempotency key is kept", async () => {
  const { server, client } = await connectTo([answer(200, { operation: {} })])
  await client.vmDelete({ project_id, vm_id }, { idempotencyKey: 'job-7' })
  expect(server.requests[0]?.headers['idempotency-key']).toBe('job-7')
})

test('a conflict is final, unless the same request is still in progress', async () => {
  const final = await connectTo([failure(409, 'conflict'), answer(200, {})])
  expect(await failureOf(final.client.vmDelete({ project_id, vm_id }))).toMatchObject({
    ...{ code: 'conflict', blockingOperationId: undefined, isOutcomeUnknown: false },
  })
  const busy = { code: 'conflict', message: 'The VM is busy.', request_id: 'r-1' }
  const blocked = await connectTo([answer(409, { ...busy, details: { operation_id: 'o-1' } })])
  expect(await failureOf(blocked.client.vmDelete({ project_id, vm_id }))).toMatchObject({
    ...{ code: 'conflict', blockingOperationId: 'o-1', isOutcomeUnknown: false, details: [] },
  })
  const inProgress = await connectTo([
    failure(409, 'conflict', { 'retry-after': '0' }),
    answer(200, { operation: {} }),
  ])
  await inProgress.client.vmDelete({ project_id, vm_id })
  expect(inProgress.server.requests).toHaveLength(2)
})

test('a login is sent once, without an idempotency key or a credential, even if it fails', async () => {
  const { server, client } = await connectTo([failure(503, 'unavailable'), answer(200, {})])
  const login = client.authToken({ grant_type: 'password', email: 'ada@example.com', password: 'secret' })
  expect((await failureOf(login)).code).toBe('unavailable')
  expect(server.requests).toHaveLength(1)
  expect(server.requests[0]?.headers).not.toHaveProperty('idempotency-key')
  expect(server.requests[0]?.headers).not.toHaveProperty('authorization')
})

test('the client waits for as long as the service requests, but not for hours', async () => {
  const { server, client } = await connectTo([
    failure(429, 'rate_limited', { 'retry-after': '7200' }),
    answer(200, []),
  ])
  const error = await failureOf(client.projectList())
  expect(error).toMatchObject({ code: 'rate_limited', status: 429, retryAfterMs: 7_200_000 })
  expect(server.requests).toHaveLength(1)
})

test('an invalid request is reported immediately, with its fields', async () => {
  const body = {
    code: 'invalid_argument',
    message: 'bad',
    request_id: 'r',
    details: [{ field: '/size', message: 'too big' }],
  }
  const { server, client } = await connectTo([answer(400, body)])
  const error = await failureOf(client.diskUpdate({ project_id, disk_id: vm_id }, { size: '1GiB' }))
  expect(error).toMatchObject({
    code: 'invalid_argument',
    status: 400,
    requestId: 'r',
    details: body.details,
  })
  expect(server.requests).toHaveLength(1)
})

test('an out_of_stock error has the locations with stock, the members that fit and the queue', async () => {
  const body = {
    code: 'out_of_stock',
    message: 'out of stock',
    request_id: 'r',
    available_locations: ['eu-north1-a'],
    fits: 3,
    queue: { length: 2, likely_at: '' },
  }
  const { client } = await connectTo([answer(409, body)])
  expect(await failureOf(client.vmDelete({ project_id, vm_id }))).toMatchObject({
    availableLocations: ['eu-north1-a'],
    fits: 3,
    queue: { length: 2, likely_at: '' },
  })
})

test('a response that is not from this API is reported as such', async () => {
  const page = await connectTo([answer(404, '<html>not here</html>')])
  expect((await failureOf(page.client.rootGet())).code).toBe('unexpected_answer')
  const text = await connectTo([answer(200, 'hello')])
  expect((await failureOf(text.client.rootGet())).code).toBe('unexpected_answer')
})

test('an unreachable server is reported as a failed connection', async () => {
  const { server, client } = await connectTo([hangUp], { retries: 1 })
  await server.close()
  closers.length = 0
  expect(await failureOf(client.projectList())).toMatchObject({ code: 'connection_failed', status: 0 })
})

test('a server that does not respond causes a timeout for each attempt', async () => {
  let attempts = 0
  const { client } = await connectTo([silence], {
    ...{ timeoutMs: 50, retries: 1 },
    // Counted here, because a request may time out before a busy server has seen it.
    fetch: (input, init) => {
      attempts++
      return fetch(input, init)
    },
  })
  expect((await failureOf(client.projectList())).code).toBe('timed_out')
  expect(attempts).toBe(2)
})

test('an aborted call ends with the reason of the signal, during the request and during a pause', async () => {
  const controller = new AbortController()
  const silent = await connectTo([
    (_response, _request) => {
      controller.abort(new Error('enough'))
    },
  ])
  await expect(silent.client.projectList({}, { signal: controller.signal })).rejects.toThrow('enough')

  const pausing = new AbortController()
  const busy = await connectTo([
    (response, request) => {
      failure(429, 'rate_limited', { 'retry-after': '30' })(response, request)
      setTimeout(() => pausing.abort(new Error('enough')), 20)
    },
  ])
  await expect(busy.client.projectList({}, { signal: pausing.signal })).rejects.toThrow('enough')
  expect(busy.server.requests).toHaveLength(1)
})

test('a rejected token is replaced once, and a second rejection is final', async () => {
  const asked: (string | undefined)[] = []
  const token = (rejected?: string) => {
    asked.push(rejected)
    return rejected === undefined ? 'old' : 'new'
  }
  const good = await connectTo([failure(401, 'unauthenticated'), answer(200, [])], { token })
  await good.client.projectList()
  expect(good.server.requests.map((request) => request.headers.authorization)).toEqual([
    'Bearer old',
    'Bearer new',
  ])

  const refusals: ApiError[] = []
  const bad = await connectTo([failure(401, 'unauthenticated')], {
    token,
    onUnauthenticated: (error) => refusals.push(error),
  })
  expect((await failureOf(bad.client.projectList())).code).toBe('unauthenticated')
  expect(bad.server.requests).toHaveLength(2)
  expect(refusals).toHaveLength(1)
  expect(asked).toEqual([undefined, 'old', undefined, 'old'])
})

test('pages are read one after another, and no further than needed', async () => {
  const page = (names: string[], next: string) =>
    answer(200, { items: names.map((name) => ({ name })), next_page_token: next })
  const whole = await connectTo([page(['a', 'b'], 'two'), page(['c'], '')])
  const names = (await whole.client.collect('vmList', { project_id })).map((vm) => vm.name)
  expect(names).toEqual(['a', 'b', 'c'])
  expect(whole.server.requests[1]?.path).toContain('page_token=two')

  const part = await connectTo([page(['a', 'b'], 'two'), page(['c'], '')])
  for await (const vm of part.client.each('vmList', { project_id })) if (vm.name === 'b') break
  expect(part.server.requests).toHaveLength(1)
})
