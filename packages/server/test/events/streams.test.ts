import { connect } from 'node:net'
import { openStream } from '@slipway/testing/event-stream.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let owner: string
beforeAll(async () => {
  service = await startService()
  owner = (await signIn()).access_token
})
afterAll(() => service.close())

const signIn = () => {
  const { email, password } = service.credentials
  return service.ok('authToken', { token: null, body: { grant_type: 'password', email, password } })
}
const stream = (options: Partial<Parameters<typeof openStream>[2]> = {}, url = service.url) =>
  openStream(url, service.credentials.project_id, { token: service.credentials.access_key, ...options })
const newKey = async (body: Record<string, unknown> = {}) =>
  service.ok('accessKeyCreate', {
    token: owner,
    body: { name: 'reader', role: 'read', ...body },
  })
/** Writes events of this project that nothing else causes. */
const write = (count: number, type = 'invoice.issued', data: unknown = {}) =>
  service.sql(
    `INSERT INTO events_pending (id, project_id, type, resource_type, resource_id, actor, request_id, data)
     SELECT gen_random_uuid(), $1, $2, 'test', $3, 'system', '', $5 FROM generate_series(1, $4::int) n`,
    [service.credentials.project_id, type, crypto.randomUUID(), count, JSON.stringify(data)],
  )
const ofType = (type: string) => (event: { type: string }) => event.type === type

test('an event stream sends the events of a VM in order, from now on', async () => {
  const client = await stream()
  const { operation } = await service.ok('vmCreate', { body: vmBody() })
  const first = await client.next()
  expect(first).toMatchObject({ type: 'vm.creating', resource_id: operation.metadata.id })
  expect(await client.next(ofType('vm.running'))).toMatchObject({ resource_id: operation.metadata.id })
  await client.next(ofType('operation.succeeded'))
  expect(client.ids).toEqual(client.events.map(({ position }) => String(position)))
  const { items } = await service.ok('eventList', { query: { resource_id: operation.metadata.id } })
  const received = client.events.filter(({ resource_id }) => resource_id === operation.metadata.id)
  expect(received.toReversed()).toEqual(items)
})

test('an event stream continues after Last-Event-ID, without gaps or repetitions', async () => {
  const first = await stream({ query: '?type=invoice.paid' })
  await write(3, 'invoice.paid')
  await first.next()
  await first.next()
  first.close()
  await write(1200, 'invoice.paid')
  const second = await stream({ query: '?type=invoice.paid', lastEventId: first.events[0]!.position })
  await write(5, 'invoice.paid')
  while (second.events.length < 2 + 1200 + 5) await second.next()
  const rows = await eventually(async () => {
    const found = await service.sql<{ position: number }>(
      `SELECT position FROM events_written WHERE type = 'invoice.paid' AND position > $1 ORDER BY position`,
      [first.events[0]!.position],
    )
    return found.length === 1207 && found
  })
  expect(second.events.map(({ position }) => position)).toEqual(rows.map(({ position }) => position))
})

test('an event stream contains only events of its project that match its filters', async () => {
  const { id } = await service.ok('projectCreate', {
    token: owner,
    body: { name: `other-${Date.now()}`, organization_id: service.credentials.organization_id },
  })
  const filtered = await stream({ query: '?type=host.up' })
  const everything = await stream({
    token: service.credentials.operator_key,
    path: '/v0.1/admin/events',
    query: '?type=host.down',
  })
  await service.sql(
    `INSERT INTO events_pending (id, project_id, type, resource_type, resource_id, actor, request_id)
       VALUES (gen_random_uuid(), $1, 'host.down', 'test', '', 'system', ''),
              (gen_random_uuid(), NULL, 'host.down', 'test', '', 'system', '')`,
    [id],
  )
  await write(2, 'test.unwanted')
  await write(1, 'host.up')
  await filtered.next()
  expect(filtered.events.map(({ type }) => type)).toEqual(['host.up'])
  await everything.next()
  await everything.next()
})

test('project, organization and operator streams each send a matching event once', async () => {
  const { project_id, organization_id, operator_key } = service.credentials
  const ofProject = await stream({ query: '?type=member.added' })
  const ofOrganization = await stream({
    token: owner,
    path: `/v0.1/organizations/${organization_id}/events`,
    query: '?type=member.added',
  })
  const ofAll = await stream({
    token: operator_key,
    path: '/v0.1/admin/events',
    query: '?type=member.added',
  })
  await service.sql(
    `INSERT INTO events_pending (id, organization_id, project_id, type, resource_type, resource_id, actor, request_id)
     SELECT gen_random_uuid(), organization, project, 'member.added', 'test', name, 'system', ''
     FROM (VALUES (1, $1::uuid, $2::uuid, 'of the project'), (2, $1, NULL, 'of the organization'),
                  (3, NULL, NULL, 'of nobody'), (4, NULL, $2, 'last'), (5, $1, NULL, 'last')) e (n, organization, project, name)
     ORDER BY n`,
    [organization_id, project_id],
  )
  const namesIn = async (client: Awaited<ReturnType<typeof stream>>) => {
    await client.next(({ resource_id }) => resource_id === 'last')
    return client.events.map(({ resource_id }) => resource_id)
  }
  expect(await namesIn(ofProject)).toEqual(['of the project', 'last'])
  expect(await namesIn(ofOrganization)).toEqual(['of the organization', 'last'])
  await ofAll.next(({ resource_id }) => resource_id === 'of nobody')
  await ofAll.next()
  await ofAll.next()
  expect(ofAll.events.map(({ resource_id }) => resource_id)).toEqual([
    'of the project',
    'of the organization',
    'of nobody',
    'last',
    'last',
  ])
})

test('an event stream rejects a position that is invalid, in the future, or no longer kept', async () => {
  const refused = async (lastEventId: string) =>
    service.request('GET', `/v0.1/projects/${service.credentials.project_id}/events`, {
      headers: { Accept: 'text/event-stream', 'Last-Event-ID': lastEventId },
    })
  for (const garbled of ['x', '-1', '1.5', '9'.repeat(30), '999999999999'])
    expect(await refused(garbled)).toMatchObject({ status: 400, body: { code: 'invalid_argument' } })
  await write(5, 'test.old')
  await eventually(() =>
    service.sql('SELECT FROM events WHERE position > 5').then(({ length }) => length > 0),
  )
  await service.sql(`UPDATE event_counter SET pruned_position = 3`)
  expect((await refused('2')).status).toBe(400)
  const client = await stream({ lastEventId: 3 })
  const [oldest] = await service.sql<{ position: number }>(
    'SELECT min(position) AS position FROM events WHERE position > 3 AND project_id = $1',
    [service.credentials.project_id],
  )
  expect((await client.next()).position).toBe(oldest!.position)
  await service.sql(`UPDATE event_counter SET pruned_position = 0`)
})

test('an event stream sends events of other processes, and can be continued in another process', async () => {
  const other = await service.another()
  const client = await stream({}, other.url)
  const { id } = await newKey()
  const event = await client.next(ofType('access_key.created'))
  expect(event.resource_id).toBe(id)
  await other.close()
  await client.closed
  await write(1, 'test.meanwhile')
  const again = await stream({ lastEventId: event.position })
  expect((await again.next(ofType('test.meanwhile'))).position).toBeGreaterThan(event.position)
})

test('an event stream ends when its key is revoked, in every process', async () => {
  const other = await service.another()
  const key = await newKey()
  const [here, there, unconcerned] = await Promise.all([
    stream({ token: key.secret }),
    stream({ token: key.secret }, other.url),
    stream(),
  ])
  await service.ok('accessKeyDelete', { token: owner, params: { key_id: key.id } })
  await Promise.all([here!.closed, there!.closed])
  expect(unconcerned!.isClosed).toBe(false)
})

test('an event stream ends when its key expires and when its user signs out', async () => {
  const expiring = await newKey({ expires_at: new Date(Date.now() + 600_000).toISOString() })
  const session = await signIn()
  const [first, second] = await Promise.all([
    stream({ token: expiring.secret }),
    stream({ token: session.access_token }),
  ])
  await service.ok('authRevoke', { token: null, body: { refresh_token: session.refresh_token } })
  await second!.closed
  expect(first!.isClosed).toBe(false)
  await service.clock.advance('11 minutes')
  await first!.closed
  await service.clock.reset()
  const trail = await service.ok('adminEventList', { token: service.credentials.operator_key })
  expect(trail.items.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['user.signed_in', 'user.signed_out']),
  )
})

test('an event stream disconnects a client that does not read, and no other client', async () => {
  const lazy = connect(Number(new URL(service.url).port), '127.0.0.1')
  lazy.on('error', () => {})
  lazy.write(
    `GET /v0.1/projects/${service.credentials.project_id}/events HTTP/1.1\r\nHost: x\r\n` +
      `Accept: text/event-stream\r\nAuthorization: Bearer ${service.credentials.access_key}\r\n\r\n`,
  )
  await new Promise((resolve) => lazy.once('data', resolve))
  lazy.pause()
  const dropped = new Promise((resolve) => lazy.on('close', resolve))
  const other = await stream({ query: '?type=gpu.missing' })
  await write(60, 'test.large', { text: 'x'.repeat(100_000) })
  await write(1, 'gpu.missing')
  await other.next()
  // A socket that does not read does not notice that it was closed.
  lazy.resume()
  await dropped
  expect(other.isClosed).toBe(false)
})

test('an event stream ends when the server stops', async () => {
  const other = await service.another()
  const client = await stream({}, other.url)
  await other.close()
  await client.closed
})
