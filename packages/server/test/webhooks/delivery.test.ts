import { eventually } from '@slipway/testing/eventually.ts'
import { keepSessions } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { type Receiver, startReceiver, verify } from '@slipway/testing/webhook-receiver.ts'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { retryPausesS } from '../../src/webhooks/delivery.ts'

let service: TestService
let owner: string
beforeAll(async () => {
  service = await startService((config) => {
    config.webhooks.allowPrivateRanges = ['127.0.0.0/8']
  })
  const { email, password } = service.credentials
  const body = { grant_type: 'password', email, password }
  owner = (await service.ok('authToken', { token: null, body })).access_token
  await keepSessions(service)
})
afterAll(() => service.close())
afterEach(async () => {
  await service.sql('DELETE FROM webhooks')
  await service.clock.reset()
})

const create = async (receiver: Receiver, event_types: string[]) =>
  service.ok('webhookCreate', { token: owner, body: { url: `${receiver.url}/hook`, event_types } })
const deliveries = async (webhook_id: string) =>
  (await service.ok('webhookDeliveryList', { params: { webhook_id } })).items
const addEvent = (type: string, resource: string, data: unknown = {}) =>
  service.sql(
    `INSERT INTO events_pending (id, project_id, type, resource_type, resource_id, actor, request_id, data)
     VALUES (gen_random_uuid(), $1, $2, 'test', $3, 'system', '', $4)`,
    [service.credentials.project_id, type, resource, JSON.stringify(data)],
  )
/** Delivers everything that is due now and waits for the outcomes. */
const deliver = async () => {
  await service.ok('eventList')
  await service.server.webhooks.once()
}

test('a webhook gets the events it subscribed to, signed according to Standard Webhooks', async () => {
  const receiver = await startReceiver()
  const { secret, ...webhook } = await create(receiver, ['access_key.*'])
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  const key = await service.ok('accessKeyCreate', { token: owner, body: { name: 'a', role: 'read' } })
  const [received] = await eventually(async () => receiver.received.length > 0 && receiver.received)
  expect(verify(secret, received!)).toMatchObject({
    type: 'access_key.created',
    data: { type: 'access_key.created', resource_id: key.id, actor: expect.stringMatching(/^user:/) },
  })
  expect(received).toMatchObject({ path: '/hook', headers: { 'content-type': 'application/json' } })
  expect(received!.headers['webhook-id']).toBe(received!.body.data.id)
  const [delivery] = await eventually(async () => {
    const found = await deliveries(webhook.id)
    return found[0]?.state === 'delivered' && found
  })
  expect(delivery).toMatchObject({ attempts: 1, response_status: 204, error: '', next_attempt_at: '' })
  expect(receiver.received.map(({ body }) => body.type)).toEqual(['access_key.created'])
  const list = await service.ok('webhookList')
  expect(list.items).toEqual([webhook])
  expect(JSON.stringify(await service.ok('eventList', {}))).not.toContain(secret)
})

test('a delivery has the time of the database, regardless of the clock of the worker', async () => {
  const receiver = await startReceiver()
  const { secret } = await create(receiver, ['gpu.*'])
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
  onTestFinished(() => void vi.useRealTimers())
  await addEvent('gpu.stamped', 'a')
  const [received] = await eventually(async () => receiver.received.length > 0 && receiver.received)
  vi.useRealTimers()
  verify(secret, received!)
})

test('for a day after a rotation, deliveries are signed with the old and the new secret, then only with the new one', async () => {
  const receiver = await startReceiver()
  const { id: webhook_id, secret: first } = await create(receiver, ['webhook.test'])
  const { secret: second } = await service.ok('webhookRotateSecret', {
    token: owner,
    params: { webhook_id },
  })
  expect(second).not.toBe(first)
  await service.ok('webhookTest', { token: owner, params: { webhook_id } })
  const [overlapping] = await eventually(async () => receiver.received.length > 0 && receiver.received)
  verify(first, overlapping!)
  verify(second, overlapping!)
  await service.clock.advance('25 hours')
  await service.ok('webhookTest', { token: owner, params: { webhook_id } })
  const later = await eventually(async () => receiver.received.find((each) => each !== overlapping))
  verify(second, later)
  expect(() => verify(first, later)).toThrow()
})

test('a delivery is retried with growing pauses for a day, then given up, and can be replayed', async () => {
  const receiver = await startReceiver()
  receiver.answer = () => 503
  await service.clock.freeze(new Date().toISOString())
  const { id: webhook_id } = await create(receiver, ['gpu.*'])
  await addEvent('gpu.lost', 'a')
  await deliver()
  for (const [index, pauseS] of retryPausesS.entries()) {
    const [waiting] = await deliveries(webhook_id)
    expect(waiting).toMatchObject({ state: 'pending', attempts: index + 1, response_status: 503 })
    await service.clock.advance(`${pauseS - 1} seconds`)
    await deliver()
    expect(receiver.received.length).toBe(index + 1)
    await service.clock.advance('1 second')
    await deliver()
  }
  expect(receiver.received.length).toBe(1 + retryPausesS.length)
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  const [failed] = await deliveries(webhook_id)
  expect(failed).toMatchObject({ state: 'failed', error: 'responded with 503', next_attempt_at: '' })
  expect(retryPausesS.reduce((sum, each) => sum + each)).toBe(86_400)

  receiver.answer = () => 200
  const replay = await service.ok('webhookDeliveryReplay', {
    token: owner,
    params: { webhook_id, delivery_id: failed!.id },
  })
  expect(replay).toMatchObject({ state: 'pending', event_id: failed!.event_id })
  const idsIn = async (state: 'pending' | 'delivered' | 'failed') => {
    const { items } = await service.ok('webhookDeliveryList', { params: { webhook_id }, query: { state } })
    return items.map(({ id }) => id)
  }
  expect(await idsIn('pending')).toEqual([replay.id])
  expect(await idsIn('failed')).toEqual([failed!.id])
  expect(await idsIn('delivered')).toEqual([])
  await deliver()
  const [replayed] = await deliveries(webhook_id)
  expect(replayed).toMatchObject({ id: replay.id, state: 'delivered' })
  expect(receiver.received.at(-1)!.text).toBe(receiver.received[0]!.text)
})

test('a delivery shows the payload as it was sent, and the beginning of the response if it is text', async () => {
  const receiver = await startReceiver()
  receiver.answer = () => 500
  await service.clock.freeze(new Date().toISOString())
  const { id: webhook_id } = await create(receiver, ['gpu.*'])
  const read = async () => {
    const delivery_id = (await deliveries(webhook_id))[0]!.id
    return service.ok('webhookDeliveryGet', { params: { webhook_id, delivery_id } })
  }
  const receive = async (body: string | Buffer) => {
    receiver.responseBody = body
    await addEvent('gpu.lost', crypto.randomUUID(), { name: '</script>' })
    await service.clock.advance('10 minutes')
    await deliver()
    return read()
  }
  const refused = await receive('unknown event <b>')
  expect(refused).toMatchObject({ response_status: 500, response_body: 'unknown event <b>' })
  expect(receiver.received.map(({ text }) => text)).toContain(refused.payload)
  // The cut does not divide a character, which has three bytes here.
  expect((await receive('€'.repeat(1_000))).response_body).toBe('€'.repeat(Math.floor(2048 / 3)))
  expect((await receive(Buffer.from([0x68, 0x00, 0x69]))).response_body).toBe('')
  expect((await receive(Buffer.from([0xff, 0xfe, 0x68]))).response_body).toBe('')
  const other = await service.call('webhookDeliveryGet', {
    params: { webhook_id, delivery_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10' },
  })
  expect(other.status).toBe(404)
})

test('deliveries keep the order of each resource, and a failing one delays only its own resource', async () => {
  const receiver = await startReceiver()
  let isFailing = true
  receiver.answer = ({ body }) => (isFailing && body.data.resource_id === 'a' ? 500 : 200)
  await create(receiver, ['gpu.*'])
  for (const n of [1, 2, 3]) for (const resource of ['a', 'b']) await addEvent('gpu.step', resource, { n })
  await deliver()
  const arrived = (resource: string) =>
    receiver.received
      .filter(({ body }) => body.data.resource_id === resource)
      .map(({ body }) => (body.data.data as { n: number }).n)
  expect(arrived('b')).toEqual([1, 2, 3])
  expect(arrived('a')).toEqual([1])
  isFailing = false
  await service.clock.advance('1 minute')
  await deliver()
  expect(arrived('a')).toEqual([1, 1, 2, 3])
})

test('several workers deliver the events of a webhook without repetition', async () => {
  const receiver = await startReceiver()
  const other = await service.another()
  await create(receiver, ['gpu.*'])
  for (let n = 0; n < 40; n++) await addEvent('gpu.many', `resource-${n % 10}`, { n })
  await service.ok('eventList')
  await Promise.all([service.server.webhooks.once(), other.webhooks.once()])
  await eventually(async () => receiver.received.length >= 40)
  await Promise.all([service.server.webhooks.once(), other.webhooks.once()])
  expect(receiver.received.length).toBe(40)
  for (let resource = 0; resource < 10; resource++) {
    const arrived = receiver.received
      .filter(({ body }) => body.data.resource_id === `resource-${resource}`)
      .map(({ body }) => (body.data.data as { n: number }).n)
    expect(arrived).toEqual([resource, resource + 10, resource + 20, resource + 30])
  }
  await other.close()
})

test('a webhook is paused after three days without success, reports it, and continues where it stopped when resumed', async () => {
  const receiver = await startReceiver()
  receiver.answer = () => 500
  const { id: webhook_id } = await create(receiver, ['gpu.*'])
  const day = async (name: string) => {
    await addEvent(`gpu.${name}`, name)
    await deliver()
    for (const pauseS of retryPausesS) {
      await service.clock.advance(`${pauseS + 1} seconds`)
      await deliver()
    }
  }
  const webhook = async () => (await service.ok('webhookList')).items[0]!
  const state = async () => (await webhook()).state
  await day('first')
  const { failing_since } = await webhook()
  await day('second')
  expect(await state()).toBe('active')
  await day('third')
  expect(await webhook()).toMatchObject({ state: 'paused', failing_since, next_attempt_at: '' })
  const { items } = await service.ok('eventList', { query: { type: 'webhook.paused' } })
  expect(items).toMatchObject([{ resource_id: webhook_id, actor: 'system' }])

  const before = receiver.received.length
  await addEvent('gpu.meanwhile', 'x')
  await deliver()
  expect(receiver.received.length).toBe(before)
  expect((await deliveries(webhook_id))[0]).toMatchObject({ state: 'pending', next_attempt_at: '' })
  receiver.answer = () => 200
  await service.ok('webhookUpdate', { token: owner, params: { webhook_id }, body: { state: 'active' } })
  await deliver()
  // There is no order between resources.
  expect(receiver.received.slice(before).map(({ body }) => body.type)).toContain('gpu.meanwhile')
  expect(await webhook()).toMatchObject({ state: 'active', failing_since: '', next_attempt_at: '' })
})

test('redirects and broken connections count as failures, and the webhook shows when they started', async () => {
  const receiver = await startReceiver()
  const { id: webhook_id, failing_since, next_attempt_at } = await create(receiver, ['gpu.*'])
  expect([failing_since, next_attempt_at]).toEqual(['', ''])
  receiver.answer = () => 302
  await addEvent('gpu.redirected', 'a')
  await deliver()
  const [redirected] = await deliveries(webhook_id)
  expect(redirected).toMatchObject({ state: 'pending', response_status: 302 })
  expect(redirected!.error).toContain('redirects are not followed')
  const [failing] = (await service.ok('webhookList')).items
  expect(failing).toMatchObject({ state: 'active', failing_since: expect.stringMatching(/Z$/) })
  expect(failing!.next_attempt_at >= redirected!.next_attempt_at).toBe(true)
  expect(receiver.received.map(({ path }) => path)).toEqual(['/hook'])
  await receiver.close()
  await addEvent('gpu.refused', 'b')
  await deliver()
  const [refused] = await deliveries(webhook_id)
  expect(refused).toMatchObject({ state: 'pending', response_status: 0 })
  expect(refused!.error).toContain('ECONNREFUSED')
})

test('a webhook gets no events from before its creation, and none after its deletion', async () => {
  const receiver = await startReceiver()
  await addEvent('gpu.before', 'a')
  await service.ok('eventList')
  const { id: webhook_id } = await create(receiver, ['gpu.*'])
  await addEvent('gpu.after', 'a')
  await deliver()
  expect(receiver.received.map(({ body }) => body.type)).toEqual(['gpu.after'])
  await service.ok('webhookDelete', { token: owner, params: { webhook_id } })
  await addEvent('gpu.too-late', 'a')
  await deliver()
  expect(receiver.received.length).toBe(1)
  expect((await service.call('webhookDeliveryList', { params: { webhook_id } })).status).toBe(404)
})

test('a delivery names the resource of its event, even if the event does not', async () => {
  const receiver = await startReceiver()
  const { id: webhook_id, url } = await create(receiver, ['disk.*', 'operation.*'])
  const { operation } = await service.ok('diskCreate', {
    body: { name: 'datasets', size: '10GiB', location: 'us-east1-a' },
  })
  const resource_id = operation.metadata.id
  const found = await eventually(async () => {
    const all = await deliveries(webhook_id)
    return all.length === 3 && all
  })
  for (const each of found)
    expect(each).toMatchObject({ resource_type: 'disk', resource_id, resource_name: 'datasets' })
  const ended = found.find(({ event_type }) => event_type === 'operation.succeeded')
  const replayed = await service.ok('webhookDeliveryReplay', {
    token: owner,
    params: { webhook_id, delivery_id: ended!.id },
  })
  expect(replayed).toMatchObject({ resource_type: 'disk', resource_id, resource_name: 'datasets' })
  expect(await service.ok('webhookTest', { token: owner, params: { webhook_id } })).toMatchObject({
    resource_type: 'webhook',
    resource_id: webhook_id,
    resource_name: url,
  })
})

test('a delivery of a capacity request names what the request waits for', async () => {
  const receiver = await startReceiver()
  const { id: webhook_id } = await create(receiver, ['capacity_request.*'])
  await addEvent('capacity_request.created', 'a', { request: { vm: { name: 'nightly' } } })
  await addEvent('capacity_request.held', 'b', { request: { instance_group: { name: 'trainer' } } })
  await addEvent('capacity_request.expired', 'c', { request: { start_vm_id: webhook_id } })
  await deliver()
  const named = (await deliveries(webhook_id)).map(({ resource_id, resource_name }) => [
    resource_id,
    resource_name,
  ])
  // There is no VM with the last ID.
  expect(Object.fromEntries(named)).toEqual({ a: 'nightly', b: 'trainer', c: '' })
})

test('a webhook with unknown event types is rejected', async () => {
  const token = owner
  const create = (event_types: string[]) =>
    service.call('webhookCreate', { token, body: { url: 'http://127.0.0.1:9/hook', event_types } })
  for (const unknown of ['VM*', 'vm.runing', 'vms.*', 'vm.running.*', 'vm', '*.running', '']) {
    const { status, body } = await create(['vm.running', unknown])
    expect([unknown, status, body]).toEqual([
      unknown,
      400,
      expect.objectContaining({ details: [expect.objectContaining({ field: '/event_types/1' })] }),
    ])
  }
  expect((await create(['vm.runing'])).body).toMatchObject({
    message: expect.stringContaining('did you mean vm.running?'),
  })
  const { id } = await service.ok('webhookCreate', {
    token,
    body: { url: 'http://127.0.0.1:9/hook', event_types: ['*', 'vm.*', 'operation.failed'] },
  })
  const changed = await service.call('webhookUpdate', {
    token,
    params: { webhook_id: id },
    body: { event_types: ['vm.gone'] },
  })
  expect(changed.status).toBe(400)
})
