import { openStream } from '@slipway/testing/event-stream.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { addKey, ownerToken } from '@slipway/testing/people.ts'
import { useService } from '@slipway/testing/service.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { EventRow } from '../../src/store/events/events.ts'

test('500 concurrent streams are served, and each event is read from the table once', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const service = await useService()
  const { project_id } = service.credentials
  const owner = await ownerToken(service)
  const keys = await Promise.all(
    Array.from({ length: 500 / 50 }, () => addKey(service, owner, project_id, 'read')),
  )
  const clients = await Promise.all(
    keys.flatMap(({ secret }) =>
      Array.from({ length: 50 }, () => openStream(service.url, project_id, { token: secret })),
    ),
  )
  const reads = vi.spyOn(service.database, 'query')
  const rule = {
    name: 'for-all',
    action: 'deny',
    direction: 'ingress',
    vpc_network_id: (await service.ok('networkList')).items[0]!.id,
    protocols: ['tcp'],
    sources: [{ cidr: '203.0.113.0/24' }],
    destinations: [{ cidr: '0.0.0.0/0' }],
  }
  await service.ok('firewallRuleCreate', { body: rule })
  const ended = await Promise.all(
    clients.map((client) => client.next(({ type }) => type === 'operation.succeeded')),
  )
  expect(new Set(ended.map(({ position }) => position)).size).toBe(1)
  expect(new Set(clients.map(({ ids }) => ids.join())).size).toBe(1)
  const responses = await Promise.all(reads.mock.results.map(({ value }) => value))
  const read = responses.flatMap(({ rows }) => rows as Partial<EventRow>[])
  const positions = read.filter(({ type, position }) => type && position).map(({ position }) => position)
  expect(positions).toEqual(clients[0]!.events.map(({ position }) => position))

  const before = clients.map(({ comments }) => comments)
  vi.advanceTimersByTime(15_000)
  await eventually(async () => clients.every(({ comments }, index) => comments > before[index]!))
  expect(clients.some(({ isClosed }) => isClosed)).toBe(false)
})

test('a caller has at most 64 open streams, and ended streams no longer count', async () => {
  const service = await useService()
  const { project_id, access_key } = service.credentials
  const open = () => openStream(service.url, project_id, { token: access_key })
  const streams = await Promise.all(Array.from({ length: 64 }, open))
  await expect(open()).rejects.toThrow(/429.*Limit: 64/)
  streams[0]!.close()
  const again = await eventually(() => open().catch(() => null))
  expect(again.isClosed).toBe(false)
})
