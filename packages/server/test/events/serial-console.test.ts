import { setImmediate } from 'node:timers/promises'
import { eventually } from '@slipway/testing/eventually.ts'
import { addKey, ownerToken, tokenOfNew } from '@slipway/testing/people.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
let vm_id: string
const protocol = 'slipway.console.v1'
type Ticket = { url: string; session_id: string; expires_at: string }

beforeAll(async () => {
  service = await startService()
  resources = resourcesOf(service)
  vm_id = await resources.newVm({ name: 'guest' })
})
afterAll(() => service.close())

const ask = (body: unknown, options: { token?: string; vm?: string } = {}) =>
  service.call('vmConsoleCreate', {
    params: { vm_id: options.vm ?? vm_id },
    body,
    ...(options.token && { token: options.token }),
  })
const ticket = async (body: unknown = { mode: 'write' }, options?: Parameters<typeof ask>[1]) => {
  const { status, body: created } = await ask(body, options)
  expect(status).toBe(200)
  return created as Ticket
}

/** An open console and everything that it received. */
interface OpenSession {
  socket: WebSocket
  output: () => string
  states: unknown[]
  closed: Promise<number>
}

function open(url: string, headers: Record<string, string> = {}): Promise<OpenSession> {
  const socket = new WebSocket(url, protocol, { headers })
  let output = ''
  const states: unknown[] = []
  socket.on('message', (data, isBinary) => {
    if (isBinary) output += String(data)
    else states.push(JSON.parse(String(data)))
  })
  const closed = new Promise<number>((resolve) => socket.once('close', resolve))
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve({ socket, output: () => output, states, closed }))
    socket.once('error', reject)
  })
}

/** Returns the status of the response to a handshake that is refused. */
const refusal = (url: string, headers?: Record<string, string>) =>
  open(url, headers).then(
    () => 101,
    (error: Error) => Number(/\d{3}/.exec(error.message)?.[0]),
  )
const attach = async (body?: unknown, options?: Parameters<typeof ask>[1]) =>
  open((await ticket(body, options)).url)
/** Closes a console, and waits until the server has released it for other sessions. */
const leave = async ({ socket, closed, states }: OpenSession) => {
  socket.close()
  await closed
  const [{ session_id }] = states as [{ session_id: string }]
  const lease = 'SELECT FROM console_sessions WHERE session_id = $1'
  await eventually(async () => (await service.sql(lease, [session_id])).length === 0)
}

test('a console session shows the log so far, sends input and receives what the guest prints', async () => {
  const { url, session_id } = await ticket()
  const session = await open(url)
  await eventually(() => session.output().includes('guest login: '))
  expect(session.states).toEqual([{ type: 'state', mode: 'write', session_id }])
  // Each key is a message, and they arrive in order.
  for (const key of 'hello\r') session.socket.send(Buffer.from(key))
  await eventually(() => session.output().includes('simulated: hello'))
  const { content } = await service.ok('vmSerialLog', { params: { vm_id } })
  expect(content).toContain('hello\r\nsimulated: hello')
  await leave(session)
  const events = await eventually(async () => {
    const found = await service.sql<{ type: string; data: Record<string, unknown> }>(
      `SELECT type, data FROM events_written WHERE type LIKE 'vm.console%' AND data ->> 'session_id' = $1 ORDER BY type`,
      [session_id],
    )
    return found.length === 2 && found
  })
  expect(events[0]).toMatchObject({ type: 'vm.console_closed', data: { mode: 'write', input_bytes: 6 } })
  expect(JSON.stringify(events)).not.toContain('hello')
})

test('a console ticket works once and for 30 seconds, and only its digest is stored and logged', async () => {
  const { url } = await ticket({ mode: 'read' })
  const secret = url.split('/').at(-1)!
  expect(secret).toMatch(/^slpt_[\w-]{43}$/)
  const rows = await service.sql('SELECT * FROM console_tickets')
  expect(JSON.stringify(rows)).not.toContain(secret)
  await leave(await open(url))
  expect(await refusal(url)).toBe(404)
  const late = await ticket({ mode: 'read' })
  await service.clock.advance('31 seconds')
  expect(await refusal(late.url)).toBe(404)
  expect(await refusal(url.replace(secret, 'slpt_unknown'))).toBe(404)
  expect(service.logLines.filter((line) => line.includes('slpt_'))).toEqual([])
})

test('pages of other sites and requests without the protocol are refused, and do not use up the ticket', async () => {
  const { url } = await ticket({ mode: 'read' })
  expect(await refusal(url, { origin: 'https://elsewhere.example' })).toBe(403)
  const plain = await fetch(url.replace('ws', 'http'))
  expect(plain.status).toBe(400)
  const session = await open(url, { origin: service.url })
  await leave(session)
  const { status } = await service.request('GET', '/v0.1/projects', {
    headers: { connection: 'upgrade', upgrade: 'other' },
  })
  expect(status).toBe(200)
})

test('one console session writes, others read, and force takes over', async () => {
  const [writer, reader] = [await attach(), await attach({ mode: 'read' })]
  const second = await ask({ mode: 'write' })
  expect(second).toMatchObject({ status: 409, body: { code: 'conflict' } })
  expect(second.body).toMatchObject({ message: expect.stringContaining('is writing to this console') })
  writer.socket.send(Buffer.from('first\r'))
  await eventually(() => reader.output().includes('simulated: first'))
  const [one, other] = [
    await ticket({ mode: 'write', force: true }),
    await ticket({ mode: 'write', force: true }),
  ]
  const taking = await open(one.url)
  expect(await writer.closed).toBe(4001)
  const last = await open(other.url)
  expect(await taking.closed).toBe(4001)
  last.socket.send(Buffer.from('second\r'))
  await eventually(() => reader.output().includes('simulated: second'))
  reader.socket.send(Buffer.from('third\r'))
  expect(await reader.closed).toBe(1008)
  await leave(last)
  const again = await attach()
  await leave(again)
  expect(again.output()).not.toContain('third')
})

test('the first of two write tickets that is opened gets the console', async () => {
  const [one, other] = [await ticket(), await ticket()]
  const session = await open(other.url)
  expect(await refusal(one.url)).toBe(409)
  await leave(session)
})

test('the console lease of a process that died expires', async () => {
  await service.sql(
    `INSERT INTO console_sessions (vm_id, session_id, holder, lease_until)
     VALUES ($1, gen_random_uuid(), 'ada@example.com', slipway_now() + interval '10 seconds')`,
    [vm_id],
  )
  const refused = await ask({ mode: 'write' })
  expect(refused).toMatchObject({ status: 409 })
  expect(JSON.stringify(refused.body)).toContain('ada@example.com')
  await service.clock.advance('11 seconds')
  await leave(await attach())
})

test('a viewer can read a console but not write to it, and a session with a revoked key is closed', async () => {
  const { organization_id } = service.credentials
  const token = await tokenOfNew(service.database, { memberOf: { [organization_id]: 'viewer' } })
  expect(await ask({ mode: 'write' }, { token })).toMatchObject({
    status: 403,
    body: { code: 'permission_denied' },
  })
  await leave(await attach({ mode: 'read' }, { token }))
  const owner = await ownerToken(service)
  const key = await addKey(service, owner, service.credentials.project_id, 'write')
  const [reader, writer] = [
    await attach({ mode: 'read' }, { token: key.secret }),
    await attach({ mode: 'write' }, { token: key.secret }),
  ]
  const unused = await ticket({ mode: 'read' }, { token: key.secret })
  await service.ok('accessKeyDelete', { token: owner, params: { key_id: key.id } })
  expect([await reader.closed, await writer.closed]).toEqual([4003, 4003])
  expect(await refusal(unused.url)).toBe(401)
})

test('a console session ends when its VM is stopped or deleted', async () => {
  const vm = await resources.newVm()
  const session = await attach({ mode: 'read' }, { vm })
  await resources.succeeded(await resources.act(vm, { action: 'STOP' }))
  expect(await session.closed).toBe(4010)
  expect(await ask({ mode: 'read' }, { vm })).toMatchObject({ status: 409, body: { code: 'conflict' } })
  await resources.succeeded(await resources.act(vm, { action: 'START' }))
  const next = await attach({ mode: 'write' }, { vm })
  await resources.succeeded(await resources.removeVm(vm))
  expect(await next.closed).toBe(4004)
  expect((await ask({ mode: 'read' }, { vm })).status).toBe(404)
})

test('the refusal of a VM without a console says how to get one', async () => {
  const refusalText = async (vm: string) => (await ask({ mode: 'read' }, { vm })).body
  const stopped = await resources.newVm()
  await resources.succeeded(await resources.act(stopped, { action: 'STOP' }))
  expect(await refusalText(stopped)).toMatchObject({ message: expect.stringMatching(/Start it first\.$/) })
  const crashed = await resources.newVm()
  await service.simulator().crashVm(crashed)
  await eventually(async () => {
    await service.server.reconciler.reports()
    return (await service.ok('vmGet', { params: { vm_id: crashed } })).state === 'STATE_CRASHED'
  })
  expect(await refusalText(crashed)).toMatchObject({ message: expect.stringMatching(/Reset it first\.$/) })
})

test('a console client that stops reading is disconnected, and the log and other readers continue', async () => {
  const vm = await resources.newVm()
  const engine = service.simulator()
  const read = engine.serialLog
  const chunkBytes = 65_536
  let good: OpenSession | undefined
  let written = 0
  const isGoodBehind = (offset: number) =>
    !good || (good.socket.readyState === good.socket.OPEN && good.output().length < offset - 4 * chunkBytes)
  // Simulates a guest that writes without end, as fast as the good client reads.
  engine.serialLog = async (_ref, offset = 0) => {
    while (isGoodBehind(offset)) await setImmediate()
    written = Math.max(written, offset + chunkBytes)
    return { content: 'x'.repeat(chunkBytes), nextOffset: offset + chunkBytes }
  }
  const closedSessions = () =>
    service.sql<{ data: { session_id: string; output_bytes: number } }>(
      `SELECT data FROM events_written WHERE type = 'vm.console_closed' AND resource_id = $1`,
      [vm],
    )
  try {
    const { url, session_id } = await ticket({ mode: 'read' }, { vm })
    const slow = await open(url)
    slow.socket.pause()
    good = await attach({ mode: 'read' }, { vm })
    const { output } = good
    await eventually(async () => (await closedSessions()).length > 0)
    const seen = output().length
    await eventually(() => output().length > seen)
    const [ended, ...others] = await closedSessions()
    expect(others).toEqual([])
    expect(ended!.data).toMatchObject({ session_id })
    expect(written).toBeGreaterThan(ended!.data.output_bytes)
    slow.socket.resume()
    expect([1006, 4008]).toContain(await slow.closed)
    await leave(good)
  } finally {
    engine.serialLog = read
    good?.socket.terminate()
  }
})

test('console sessions end when the server stops', async () => {
  const session = await attach({ mode: 'read' })
  await service.restart()
  expect(await session.closed).toBe(1001)
})
