import { openStream } from '@slipway/testing/event-stream.ts'
import { ownerToken } from '@slipway/testing/people.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let trainId: string
let growingDiskId: string
/** The times between the days on which something happened. */
const [firstDay, secondDay, thirdDay] = [
  '2026-11-02T12:00:00Z',
  '2026-11-03T12:00:00Z',
  '2026-11-04T12:00:00Z',
]

beforeAll(async () => {
  service = await startService(() => {}, firstDay)
  const { newVm, newDisk, grow, removeVm, succeeded, ended, createVm } = resourcesOf(service)
  trainId = await newVm({ name: 'Train-7' })
  await service.clock.freeze(secondDay!)
  await succeeded(await removeVm(trainId))
  await newDisk({ name: 'logs' })
  await service.clock.freeze(thirdDay!)
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject' })
  expect((await ended(await createVm({ name: 'broken' }))).state).toBe('FAILED')
  // The clock is frozen, so the pause before the next attempt does not end.
  await service.simulator().addFault({ method: 'growDisk', kind: 'fail' })
  growingDiskId = (await grow(await newDisk({ name: 'growing' }), '20GiB')).operation.metadata.id
})
afterAll(() => service?.close())

type Query = Record<string, string | number>
const listed = async (query: Query) =>
  (await service.ok('eventList', { query: { limit: 500, ...query } })).items
const daysOf = (events: { created_at: string }[]) => [
  ...new Set(events.map(({ created_at }) => created_at.slice(8, 10))),
]
const noon = (day: string) => `2026-11-${day}T11:59:59+00:00`

test('start and end limit the list of events to a period, in both directions and over pages', async () => {
  const all = await listed({})
  expect(daysOf(all)).toEqual(['04', '03', '02'])
  const ofSecond = all.filter(({ created_at }) => created_at.startsWith('2026-11-03'))
  const period = { start: noon('03'), end: noon('04') }
  expect(await listed(period)).toEqual(ofSecond)
  expect(await listed({ ...period, after: 0 })).toEqual(ofSecond.toReversed())
  expect(daysOf(await listed({ start: noon('03') }))).toEqual(['04', '03'])
  expect(daysOf(await listed({ end: noon('03') }))).toEqual(['02'])
  const first = await service.ok('eventList', { query: { ...period, limit: 2 } })
  const rest = await listed({ ...period, page_token: first.next_page_token })
  expect([...first.items, ...rest]).toEqual(ofSecond)
})

test('an event that got its position after newer events is still found by its time', async () => {
  // The transaction of this event was open while the events of the next days were written.
  await service.sql(
    `INSERT INTO events_pending (id, project_id, type, resource_type, resource_id, actor, request_id, created_at)
     VALUES (gen_random_uuid(), $1, 'vm.updated', 'vm', 'late', 'system', '', '2026-11-04T11:55:00Z')`,
    [service.credentials.project_id],
  )
  const found = await listed({ start: '2026-11-04T11:54:00Z', end: '2026-11-04T11:56:00Z' })
  expect(found.map(({ resource_id }) => resource_id)).toEqual(['late'])
})

test('organizations and operators can also limit their events to a period', async () => {
  const token = await ownerToken(service)
  const { operator_key, organization_id } = service.credentials
  const params = { organization_id }
  await service.ok('memberCreate', { token, params, body: { email: 'new@example.com', role: 'viewer' } })
  const ofOrganization = async (query: Query) =>
    (await service.ok('organizationEventList', { token, params, query })).items.map(({ type }) => type)
  expect(await ofOrganization({ start: noon('04') })).toContain('member.invited')
  expect(await ofOrganization({ end: noon('04') })).not.toContain('member.invited')
  const query = { start: noon('03'), end: '2026-11-04T00:00:00Z', limit: 500 }
  const ofAll = await service.ok('adminEventList', { token: operator_key, query })
  expect(daysOf(ofAll.items)).toEqual(['03'])
})

test('q finds the events of a resource by a part of its name or id, also after its deletion', async () => {
  const ofTrain = (await listed({})).filter(({ resource_id }) => resource_id === trainId)
  expect(ofTrain.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['operation.succeeded', 'vm.deleted']),
  )
  const named = await listed({ q: 'train', resource_type: 'vm' })
  expect(named).toEqual(ofTrain)
  expect(await listed({ q: trainId.slice(-12).toUpperCase(), resource_type: 'vm' })).toEqual(ofTrain)
  // The text is not a pattern.
  expect(await listed({ q: 'train%' })).toEqual([])
  expect(await listed({ q: '_rain' })).toEqual([])
})

test('resource_type includes the results of operations, in lists and streams', async () => {
  const ofDisks = await listed({ resource_type: 'disk', q: 'logs' })
  expect(ofDisks.map(({ type }) => type).toSorted()).toEqual([
    'disk.available',
    'disk.creating',
    'operation.succeeded',
  ])
  const { project_id, access_key } = service.credentials
  const options = { token: access_key, query: '?resource_type=disk' }
  const stream = await openStream(service.url, project_id, options)
  const { newVm, newDisk } = resourcesOf(service)
  await newVm({ name: 'unrelated' })
  const id = await newDisk({ name: 'streamed' })
  while ((await stream.next()).type !== 'operation.succeeded');
  expect(new Set(stream.events.map(({ resource_id }) => resource_id))).toEqual(new Set([id]))
})

test('operation_state selects the events of operations that are in this state now', async () => {
  const failed = await listed({ operation_state: 'FAILED' })
  expect(failed.filter(({ type }) => type.startsWith('operation.'))).toMatchObject([
    { type: 'operation.failed' },
  ])
  expect(new Set(failed.map(({ data }) => data.operation_id)).size).toBe(1)
  const unfinished = await listed({ operation_state: 'IN_PROGRESS' })
  expect(unfinished).toMatchObject([{ type: 'disk.resizing', resource_id: growingDiskId }])
  const succeeded = await listed({ operation_state: 'SUCCEEDED' })
  expect(succeeded.map(({ resource_id }) => resource_id)).toContain(trainId)
  expect(await listed({ operation_state: 'IN_PROGRESS', end: noon('04') })).toEqual([])
})

test.each([
  [{ start: 'yesterday' }, 'start'],
  [{ end: '2026-12-31T23:59:60Z' }, 'end'],
  [{ q: 'x'.repeat(101) }, 'q'],
  [{ operation_state: 'DONE' }, 'operation_state'],
])('%j is refused', async (query, field) => {
  const { status, body } = await service.call('eventList', { query: query as never })
  expect(status).toBe(400)
  expect(JSON.stringify(body)).toContain(field)
})

test('the filters of lists are refused for streams, instead of being ignored', async () => {
  for (const query of [
    'start=2026-11-03T00:00:00Z',
    'end=2026-11-03T00:00:00Z',
    'q=x',
    'operation_state=FAILED',
  ]) {
    const path = `/v0.1/projects/${service.credentials.project_id}/events?${query}`
    const { status } = await service.request('GET', path, { headers: { accept: 'text/event-stream' } })
    expect(status, query).toBe(400)
  }
})
