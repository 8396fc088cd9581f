import { type GpuFaultDay, maxFaultGroups, type RouteQuery } from '@slipway/contract'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService(withLevers, '2026-11-20T23:00:00Z')
})
afterAll(() => service?.close())

const count = async (query: RouteQuery<'adminGpuFaultDayList'>): Promise<GpuFaultDay[]> =>
  (await service.ok('adminGpuFaultDayList', { token: service.credentials.operator_key, query })).items

test('GPU faults are counted by day and by model, host or XID, separately from application errors', async () => {
  const { operation } = await service.ok('vmCreate', { body: vmBody({ name: 'faulty' }) })
  await service.ended(operation.operation_id)
  const vmId = operation.metadata.id
  expect(await count({})).toEqual([])
  for (const xid of [31, 48]) await service.levers.vms.xid(vmId, { xid })
  // Moves the clock to the next day in UTC.
  await service.levers.clock.advance({ seconds: 7200 })
  await service.levers.vms.xid(vmId, { xid: 79, source: 'host' })
  const [host] = await service.sql<{ id: string; name: string; location: string; model: string }>(
    `SELECT h.id, h.name, h.location, g.model FROM gpus g JOIN hosts h ON h.id = g.host_id WHERE g.vm_id = $1`,
    [vmId],
  )
  const { id: host_id, name, location, model } = host!
  const [first, second] = ['2026-11-20', '2026-11-21']
  const none = { host_faults: 0, guest_faults: 0, other_errors: 0 }
  const plain = { host_id: '', location: '' }
  const byModel = [
    { date: first, group: model, ...plain, ...none, guest_faults: 1, other_errors: 1 },
    { date: second, group: model, ...plain, ...none, host_faults: 1 },
  ]
  expect(await count({})).toEqual(byModel)
  expect(await count({ location })).toEqual(byModel)
  const other = location === 'us-east1-a' ? 'eu-north1-a' : 'us-east1-a'
  expect(await count({ location: other })).toEqual([])
  expect(await count({ group_by: 'host' })).toEqual(
    byModel.map((day) => ({ ...day, group: name, host_id, location })),
  )
  expect(await count({ group_by: 'host', days: 1 })).toMatchObject([{ date: second, host_id }])
  expect(await count({ group_by: 'xid' })).toEqual([
    { date: first, group: '48', ...plain, ...none, guest_faults: 1 },
    { date: first, group: '31', ...plain, ...none, other_errors: 1 },
    { date: second, group: '79', ...plain, ...none, host_faults: 1 },
  ])
})

test('faults are listed for at most twenty XIDs, models or hosts; those of all others are added up for each day', async () => {
  await service.sql(
    `INSERT INTO gpu_faults (gpu_id, xid, source, at)
     SELECT (SELECT id FROM gpus ORDER BY id LIMIT 1), 1000 + n, 'guest', slipway_now() - n * interval '1 second'
     FROM generate_series(1, 30) n`,
  )
  const today = (await count({ group_by: 'xid', days: 1 })) as GpuFaultDay[]
  expect(today).toHaveLength(maxFaultGroups + 1)
  expect(today.at(-1)).toMatchObject({ group: '', host_faults: 0, other_errors: 11 })
  expect(today.reduce((sum, { other_errors }) => sum + other_errors, 0)).toBe(30)
})

test('a period that is too long, an unknown grouping and an unknown location are refused', async () => {
  const token = service.credentials.operator_key
  for (const query of [{ days: 91 }, { days: 0 }, { group_by: 'tenant' }, { location: 'mars' }])
    expect(await service.call('adminGpuFaultDayList', { token, query: query as never })).toMatchObject({
      status: 400,
    })
})
