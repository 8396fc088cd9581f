import { createClient, logIn, resumeSession } from '@slipway/sdk'
import { answer, failure, scriptedServer } from '@slipway/testing/scripted-server.ts'
import { afterEach, expect, test } from 'vitest'

const project_id = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'
const operation_id = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e12'
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function serve(...replies: Parameters<typeof scriptedServer>) {
  const server = await scriptedServer(...replies)
  closers.push(server.close)
  return server
}

const event = (position: number) =>
  `: comment\nid: ${position}\ndata: ${JSON.stringify({ position, type: 'vm.running' })}\n\n`

/** A stream that sends its text in two parts and then breaks. */
const stream =
  (text: string): Parameters<typeof scriptedServer>[0] =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(text.slice(0, 25))
    setImmediate(() => {
      response.write(text.slice(25))
      setImmediate(() => response.destroy())
    })
  }

test('a broken event stream resumes after the last event, without loss or repetition', async () => {
  const server = await serve(
    answer(200, { items: [{ position: 0 }, { position: 4 }], next_page_token: '' }),
    stream(event(5) + event(6)),
    failure(503, 'unavailable', { 'retry-after': '0' }),
    stream(event(6) + event(7)),
  )
  const client = createClient({ baseUrl: server.url, token: 'key', retryPauseMs: 1 })
  const seen: number[] = []
  for await (const { position } of client.events({ project_id })) {
    seen.push(position)
    if (position === 7) break
  }
  expect(seen).toEqual([5, 6, 7])
  const marks = server.requests.map((request) => request.headers['last-event-id'])
  expect(marks).toEqual([undefined, '4', '6', '6'])
  expect(server.requests[1]?.headers.accept).toBe('text/event-stream')
})

test('an event stream of a project without events resumes at the position that the service sent first', async () => {
  const server = await serve(
    answer(200, { items: [], next_page_token: '' }),
    stream('id: 41\n\n: nothing has happened yet\n\n'),
    stream(event(42)),
  )
  const client = createClient({ baseUrl: server.url, token: 'key', retryPauseMs: 1 })
  const first = await client.events({ project_id }).next()
  expect(first.value?.position).toBe(42)
  const marks = server.requests.map((request) => request.headers['last-event-id'])
  expect(marks).toEqual([undefined, undefined, '41'])
})

test('an event stream that the service rejects ends with the error', async () => {
  const server = await serve(failure(403, 'permission_denied'))
  const client = createClient({ baseUrl: server.url, token: 'key' })
  const next = client.events({ project_id }, { after: 3 }).next()
  await expect(next).rejects.toMatchObject({ code: 'permission_denied' })
})

test('an aborted event stream ends, even if the service never sends anything', async () => {
  const controller = new AbortController()
  const server = await serve((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    controller.abort(new Error('enough'))
  })
  const client = createClient({ baseUrl: server.url, token: 'key' })
  const next = client.events({ project_id }, { after: 3, signal: controller.signal }).next()
  await expect(next).rejects.toThrow('enough')
})

const operation = (state: string, result: unknown = null) => ({
  operation_id,
  state,
  metadata: { operation_name: 'CREATE', id: 'vm', type: 'vm', request: {} },
  result,
  started_at: '2026-11-14T23:50:00.000Z',
  completed_at: '',
})

test('waiting for an operation uses a long poll and returns the result', async () => {
  const server = await serve(
    answer(200, operation('IN_PROGRESS')),
    answer(200, operation('SUCCEEDED', { name: 'train-7' })),
  )
  const client = createClient({ baseUrl: server.url, token: 'key' })
  const { result } = await client.wait<{ name: string }>({ project_id }, operation_id)
  expect(result.name).toBe('train-7')
  expect(
    server.requests.map((request) => new URL(request.path, server.url).searchParams.get('wait')),
  ).toEqual(['0', '20'])
})

test('waiting for an operation reports its steps to a progress callback', async () => {
  const steps = answer(200, {
    items: [{ name: 'power_on', state: 'running', started_at: '', completed_at: '' }],
  })
  const server = await serve(
    answer(200, operation('IN_PROGRESS')),
    steps,
    answer(200, operation('SUCCEEDED')),
    steps,
  )
  const client = createClient({ baseUrl: server.url, token: 'key' })
  const reports: string[] = []
  await client.wait({ project_id }, operation_id, {
    onProgress: (progress) => reports.push(`${progress.operation.state} ${progress.steps[0]?.name}`),
  })
  expect(reports).toEqual(['IN_PROGRESS power_on', 'SUCCEEDED power_on'])
})

test('a failed operation is thrown with its own code', async () => {
  const server = await serve(answer(200, operation('FAILED', { code: 'boot_failed', message: 'no SSH' })))
  const client = createClient({ baseUrl: server.url, token: 'key' })
  await expect(client.wait({ project_id }, operation_id)).rejects.toMatchObject({
    code: 'boot_failed',
    message: 'no SSH',
  })
})

test('waiting for an operation times out, and the error names the operation', async () => {
  const server = await serve(answer(200, operation('IN_PROGRESS')))
  const client = createClient({ baseUrl: server.url, token: 'key' })
  const waited = client.wait({ project_id }, operation_id, { timeoutMs: 5 })
  await expect(waited).rejects.toMatchObject({ code: 'timed_out', operation: { operation_id } })
})

const tokens = (number: number, expires_in = 3600) =>
  answer(200, {
    access_token: `access-${number}`,
    refresh_token: `refresh-${number}`,
    expires_in,
    token_type: 'bearer',
  })

test('concurrent calls refresh a session once, shortly before it expires, and each token pair is reported', async () => {
  const server = await serve(tokens(1, 30), tokens(2))
  const stored: string[] = []
  const session = await logIn({
    baseUrl: server.url,
    email: 'ada@example.com',
    password: 'secret',
    onTokens: ({ refreshToken }) => void stored.push(refreshToken),
  })
  expect(await Promise.all([session.token(), session.token(), session.token()])).toEqual(
    Array(3).fill('access-2'),
  )
  expect(server.requests).toHaveLength(2)
  expect(JSON.parse(server.requests[1]!.body)).toEqual({
    grant_type: 'refresh_token',
    refresh_token: 'refresh-1',
  })
  expect(stored).toEqual(['refresh-1', 'refresh-2'])
})

test('a session is refreshed when its current token is rejected, but not when an older token was', async () => {
  const server = await serve(tokens(2))
  const session = resumeSession(
    { baseUrl: server.url },
    { accessToken: 'access-1', refreshToken: 'refresh-1', expiresAt: Date.now() + 3_600_000 },
  )
  expect(await session.token('access-0')).toBe('access-1')
  expect(server.requests).toHaveLength(0)
  expect(await session.token('access-1')).toBe('access-2')
})
