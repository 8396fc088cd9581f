import { eventually } from '@slipway/testing/eventually.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())
beforeEach(() => service.clock.freeze('2026-03-10T08:00:00Z'))

interface Interval {
  product_name: string
  quantity: number
  opened: string
  closed: string | null
}

const intervals = (resourceId: string) =>
  service.sql<Interval>(
    `SELECT product_name, quantity, to_char(lower(period) AT TIME ZONE 'UTC', 'HH24:MI') AS opened,
            to_char(upper(period) AT TIME ZONE 'UTC', 'HH24:MI') AS closed
     FROM usage_intervals WHERE resource_id = $1 ORDER BY period`,
    [resourceId],
  )
const ended = async (response: { operation: { operation_id: string } }) =>
  service.ended(response.operation.operation_id)
const createVm = async (changes = {}) => {
  const operation = await ended(await service.ok('vmCreate', { body: vmBody(changes) }))
  expect(operation.state).toBe('SUCCEEDED')
  return operation.metadata.id
}
const act = async (vm_id: string, body: unknown) =>
  ended(await service.ok('vmUpdate', { params: { vm_id }, body }))
const createDisk = async (size: string, changes = {}) => {
  const body = {
    name: `disk-${size}-${Math.random()}`.replace('.', ''),
    size,
    location: 'us-east1-a',
    ...changes,
  }
  return (await ended(await service.ok('diskCreate', { body }))).metadata.id
}
const refuse = (method: 'ensureVm' | 'ensureDisk' | 'growDisk') =>
  service.simulator().addFault({ method, kind: 'reject', times: 1000 })

test('the usage interval of a VM starts when it runs and ends when it is deleted', async () => {
  const vm = await createVm()
  expect(await intervals(vm)).toEqual([
    { product_name: 'a100.1x', quantity: 1, opened: '08:00', closed: null },
  ])
  await service.clock.freeze('2026-03-10T09:30:00Z')
  await ended(await service.ok('vmDelete', { params: { vm_id: vm } }))
  expect(await intervals(vm)).toEqual([
    { product_name: 'a100.1x', quantity: 1, opened: '08:00', closed: '09:30' },
  ])
})

test('the usage of a VM pauses while it is shut off, and continues with the new type', async () => {
  const vm = await createVm()
  await service.clock.freeze('2026-03-10T09:00:00Z')
  await act(vm, { action: 'STOP' })
  await service.clock.freeze('2026-03-10T10:00:00Z')
  await act(vm, { type: 'a100.2x' })
  await service.clock.freeze('2026-03-10T11:00:00Z')
  await act(vm, { action: 'START' })
  await service.clock.freeze('2026-03-10T12:00:00Z')
  await act(vm, { action: 'RESET' })
  expect(await intervals(vm)).toEqual([
    { product_name: 'a100.1x', quantity: 1, opened: '08:00', closed: '09:00' },
    { product_name: 'a100.2x', quantity: 1, opened: '11:00', closed: null },
  ])
  await ended(await service.ok('vmDelete', { params: { vm_id: vm } }))
})

test('the usage of a VM continues while it is crashed, because it keeps its GPUs', async () => {
  const vm = await createVm()
  await service.sql(`UPDATE simulated_vms SET power = 'crashed' WHERE id = $1`, [vm])
  await eventually(async () => {
    await service.server.reconciler.reports()
    return (await service.ok('vmGet', { params: { vm_id: vm } })).state === 'STATE_CRASHED'
  })
  expect(await intervals(vm)).toMatchObject([{ opened: '08:00', closed: null }])
  await ended(await service.ok('vmDelete', { params: { vm_id: vm } }))
})

test('the usage of a VM stops while its host is unreachable, and continues when the host is back', async () => {
  const vm = await createVm()
  const [host] = await service.sql<{ host: string }>('SELECT host FROM simulated_vms WHERE id = $1', [vm])
  const lose = (isLost: boolean) => service.simulator().setHostLost(host!.host, isLost)
  const becomes = (state: string) =>
    eventually(async () => {
      await service.server.reconciler.reports()
      return (await service.ok('vmGet', { params: { vm_id: vm } })).state === state
    })
  // The previous test ended at a later time, so the host must report at the current time before it is lost.
  await service.server.reconciler.reports()
  await lose(true)
  await service.clock.freeze('2026-03-10T09:00:00Z')
  await becomes('STATE_UNREACHABLE')
  await service.clock.freeze('2026-03-10T10:00:00Z')
  await lose(false)
  await becomes('STATE_RUNNING')
  expect(await intervals(vm)).toMatchObject([
    { opened: '08:00', closed: '09:00' },
    { opened: '10:00', closed: null },
  ])
  await ended(await service.ok('vmDelete', { params: { vm_id: vm } }))
})

test('a VM whose creation fails has no usage interval', async () => {
  await refuse('ensureVm')
  const operation = await ended(await service.ok('vmCreate', { body: vmBody() }))
  await service.simulator().clearFaults()
  expect(operation.state).toBe('FAILED')
  expect(await intervals(operation.metadata.id)).toEqual([])
})

test('the usage intervals of a VM never overlap, even with concurrent writers', async () => {
  const vm = await createVm()
  await service.clock.freeze('2026-03-10T09:00:00Z')
  const again = service.sql(
    `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
       SELECT project_id, location, resource_type, resource_id, product_name, 1, tstzrange(slipway_now(), NULL)
       FROM usage_intervals WHERE resource_id = $1`,
    [vm],
  )
  await expect(again).rejects.toThrow('usage_intervals_no_overlap')
  await ended(await service.ok('vmDelete', { params: { vm_id: vm } }))
})

test('a disk has one usage interval for each size, and 1 TiB counts as 1024 GB', async () => {
  const disk = await createDisk('100GiB')
  await service.clock.freeze('2026-03-10T09:00:00Z')
  await ended(await service.ok('diskUpdate', { params: { disk_id: disk }, body: { size: '1TiB' } }))
  await service.clock.freeze('2026-03-10T10:00:00Z')
  await ended(await service.ok('diskDelete', { params: { disk_id: disk } }))
  expect(await intervals(disk)).toEqual([
    { product_name: 'persistent-ssd', quantity: 100, opened: '08:00', closed: '09:00' },
    { product_name: 'persistent-ssd', quantity: 1024, opened: '09:00', closed: '10:00' },
  ])
})

test('a disk keeps the usage interval of its old size if growing fails, and a failed creation leaves none', async () => {
  const disk = await createDisk('100GiB')
  await refuse('growDisk')
  await service.clock.freeze('2026-03-10T09:00:00Z')
  const grown = await ended(
    await service.ok('diskUpdate', { params: { disk_id: disk }, body: { size: '200GiB' } }),
  )
  await service.simulator().clearFaults()
  expect(grown.state).toBe('FAILED')
  expect(await intervals(disk)).toMatchObject([{ quantity: 100, opened: '08:00', closed: null }])
  await ended(await service.ok('diskDelete', { params: { disk_id: disk } }))

  await refuse('ensureDisk')
  const body = { name: 'never', size: '1GiB', location: 'us-east1-a' }
  const failed = await ended(await service.ok('diskCreate', { body }))
  await service.simulator().clearFaults()
  expect(failed.state).toBe('FAILED')
  expect(await intervals(failed.metadata.id)).toEqual([])
})

test('the usage of a disk continues while its VM is shut off', async () => {
  const disk_id = await createDisk('10GiB')
  const vm = await createVm({ disks: [{ disk_id, mode: 'read-write' }] })
  await service.clock.freeze('2026-03-10T09:00:00Z')
  await act(vm, { action: 'STOP' })
  expect(await intervals(vm)).toMatchObject([{ closed: '09:00' }])
  expect(await intervals(disk_id)).toMatchObject([{ closed: null }])
  await ended(await service.ok('vmDelete', { params: { vm_id: vm } }))
  await ended(await service.ok('diskDelete', { params: { disk_id } }))
})
