import { eventually } from '@slipway/testing/eventually.ts'
import { addOrganization, addProject, addUser, tokenOf } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { type Receiver, startReceiver } from '@slipway/testing/webhook-receiver.ts'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'

let service: TestService
/** Projects of two hostile organizations, and of an honest one that only wants to receive its events. */
let hostile: string[]
let honest: string
let token: string
beforeAll(async () => {
  service = await startService((config) => {
    config.webhooks.allowPrivateRanges = ['127.0.0.0/8']
  })
  const organizations = await Promise.all(
    ['one', 'two', 'three'].map((name) => addOrganization(service.database, name)),
  )
  const memberOf = Object.fromEntries(organizations.map((id) => [id, 'owner' as const]))
  token = await tokenOf(service.database, await addUser(service.database, { memberOf }))
  hostile = []
  for (let n = 0; n < 12; n++)
    hostile.push(await addProject(service, token, organizations[n % 2]!, `hostile-${n}`))
  honest = await addProject(service, token, organizations[2]!, 'honest')
})
afterAll(() => service.close())
afterEach(async () => {
  await service.sql('DELETE FROM webhooks')
  await service.clock.reset()
})

const create = (project_id: string, { url }: Receiver) =>
  service.ok('webhookCreate', { token, params: { project_id }, body: { url, event_types: ['gpu.*'] } })
const addEvent = (project: string, resource: string, count = 1) =>
  service.sql(
    `INSERT INTO events_pending (id, project_id, type, resource_type, resource_id, actor, request_id, data)
     SELECT gen_random_uuid(), $1, 'gpu.happened', 'test', $2 || n, 'system', '', '{}' FROM generate_series(1, $3) n`,
    [project, resource, count],
  )
const resourcesOf = ({ received }: Receiver) => received.map(({ body }) => body.data.resource_id)

/** Starts a receiver that accepts every connection but does not respond until the test is over. */
async function startSilent(): Promise<Receiver> {
  const receiver = await startReceiver()
  let release = () => {}
  const over = new Promise<number>((resolve) => {
    release = () => resolve(200)
  })
  receiver.answer = () => over
  onTestFinished(() => release())
  return receiver
}

test('receivers that never respond, in many projects, do not block deliveries of other tenants', async () => {
  const [silent, quick, unknown] = [await startSilent(), await startReceiver(), await startReceiver()]
  await create(honest, quick)
  await addEvent(honest, 'first')
  await eventually(() => quick.received.length === 1)
  const sendToSilent = async (projects: string[]) => {
    for (const project of projects) {
      for (let n = 0; n < 6; n++) await create(project, silent)
      await addEvent(project, 'stuck', 5)
    }
  }
  // An organization gets at most a quarter of all slots.
  await sendToSilent(hostile.filter((_, n) => n % 2 === 0))
  await eventually(() => silent.received.length >= 16)
  await create(honest, unknown)
  await addEvent(honest, 'second', 3)
  await eventually(() => unknown.received.length === 3 && quick.received.length === 4)
  // Slow receivers together get at most half of all slots.
  await sendToSilent(hostile.filter((_, n) => n % 2 === 1))
  await eventually(() => silent.received.length >= 32)
  await addEvent(honest, 'third')
  await eventually(() => quick.received.length === 5)
  expect(resourcesOf(quick).sort()).toEqual(['first1', 'second1', 'second2', 'second3', 'third1'])
})

test('a project with thousands of due deliveries does not delay another project', async () => {
  const [flooded, quick] = [await startReceiver(), await startReceiver()]
  await create(hostile[0]!, flooded)
  await create(honest, quick)
  await addEvent(hostile[0]!, 'flood', 5_000)
  await eventually(() => flooded.received.length > 0)
  await addEvent(honest, 'between')
  await eventually(() => quick.received.length === 1)
  const [left] = await service.sql<{ count: number }>(
    `SELECT count(*) FROM webhook_deliveries WHERE state = 'pending' AND resource_id LIKE 'flood%'`,
  )
  expect(left!.count).toBeGreaterThan(1_000)
})

test('after a receiver fails to respond, its other deliveries wait, and no attempt is counted for them', async () => {
  const away = await startReceiver()
  await away.close()
  await service.clock.freeze(new Date().toISOString())
  const { id: webhook_id } = await create(honest, away)
  await addEvent(honest, 'lost')
  const deliver = async () => {
    await service.ok('eventList', { token, params: { project_id: honest } })
    await service.server.webhooks.once()
  }
  const attempts = async () => {
    const { items } = await service.ok('webhookDeliveryList', {
      token,
      params: { project_id: honest, webhook_id },
    })
    return items.map((delivery) => delivery.attempts)
  }
  await deliver()
  expect(await attempts()).toEqual([1])
  await addEvent(honest, 'other')
  await deliver()
  expect(await attempts()).toEqual([0, 1])
  await service.clock.advance('5 seconds')
  await deliver()
  // Only one delivery is attempted. Its failure delays both deliveries, now for twice as long.
  expect((await attempts()).reduce((sum, each) => sum + each)).toBe(2)
  await service.clock.advance('9 seconds')
  await deliver()
  expect((await attempts()).reduce((sum, each) => sum + each)).toBe(2)
  await service.clock.advance('1 second')
  await deliver()
  expect((await attempts()).reduce((sum, each) => sum + each)).toBe(3)
})

test('a webhook can be tested and replayed ten times a minute, and a refusal says when to try again', async () => {
  const receiver = await startReceiver()
  await service.clock.freeze(new Date().toISOString())
  const { id: webhook_id } = await create(honest, receiver)
  const params = { project_id: honest, webhook_id }
  const ask = () => service.call('webhookTest', { token, params })
  const { body: delivery } = await ask()
  await service.clock.advance('10 seconds')
  for (let n = 0; n < 9; n++) expect((await ask()).status).toBe(200)
  const replay = { token, params: { ...params, delivery_id: delivery.id } }
  for (const refused of [await ask(), await service.call('webhookDeliveryReplay', replay)]) {
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    expect(refused.headers.get('retry-after')).toBe('50')
  }
  await service.clock.advance('50 seconds')
  expect((await service.call('webhookDeliveryReplay', replay)).status).toBe(200)
  expect((await ask()).status).toBe(429)
})

test('a delivery queue continues with the next delivery when retention removes the first one', async () => {
  const receiver = await startReceiver()
  await create(honest, receiver)
  await service.sql(`UPDATE organizations SET suspended_at = slipway_now() WHERE name = 'three'`)
  await addEvent(honest, 'a')
  await addEvent(honest, 'a')
  await service.ok('eventList', { token, params: { project_id: hostile[0]! } })
  await eventually(async () => (await service.sql('SELECT FROM webhook_deliveries')).length === 2)
  await service.sql(
    `UPDATE events SET created_at = slipway_now() - interval '91 days'
     WHERE id = (SELECT event_id FROM webhook_deliveries ORDER BY seq LIMIT 1)`,
  )
  await service.server.reconciler.prune()
  await service.sql('UPDATE organizations SET suspended_at = NULL')
  await eventually(() => receiver.received.length === 1)
})
