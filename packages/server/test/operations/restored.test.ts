import { eventually } from '@slipway/testing/eventually.ts'
import { addStrayVm } from '@slipway/testing/fleet.ts'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, useService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'

let service: TestService
let resources: ReturnType<typeof resourcesOf>

beforeAll(async () => {
  service = await startService((config) => {
    config.operations.restored = true
  })
  resources = resourcesOf(service)
})
afterAll(() => service.close())

/** The store takes over what its engines have seen at a look; an operation that comes before tries again. */
const succeeded = async ({ operation }: { operation: { operation_id: string } }) =>
  expect((await service.endedSoon(operation.operation_id)).state).toBe('SUCCEEDED')

test('a restored store has VMs and disks obey that changed since, and puts its own rules in force', async () => {
  const [id, diskId] = [await resources.newVm(), await resources.newDisk({ size: '10GiB' })]
  const firewall = async () =>
    (await service.sql<{ firewall: unknown }>('SELECT firewall FROM simulated_vms WHERE id = $1', [id]))[0]
  const rules = await firewall()
  await service.sql(
    `UPDATE simulated_vms SET generation = generation + 7, firewall_generation = firewall_generation + 7, firewall = '[]'
     WHERE id = $1`,
    [id],
  )
  await service.sql('UPDATE simulated_disks SET generation = generation + 7 WHERE id = $1', [diskId])
  await service.server.reconciler.reports()
  await service.server.reconciler.firewalls()
  expect(await firewall()).toEqual(rules)
  await succeeded(await resources.act(id, { action: 'STOP' }))
  await succeeded(await resources.grow(diskId, '20GiB'))
})

test('a restored store goes on with an operation that comes before its engine was read', async () => {
  const id = await resources.newVm()
  await service.sql('UPDATE simulated_vms SET generation = generation + 7 WHERE id = $1', [id])
  await succeeded(await resources.act(id, { action: 'STOP' }))
})

test('a restored store goes on with a creation however long ago that was', async () => {
  await service.sql(
    `INSERT INTO simulated_faults (method, kind, delay_ms, remaining) VALUES ('ensureVm', 'fail', 0, 1000)`,
  )
  const { operation } = await service.ok('vmCreate', { body: vmBody() })
  await service.clock.advance('20 minutes')
  await service.sql('DELETE FROM simulated_faults')
  await succeeded({ operation })
})

test('a restored store removes and stops nothing: what no record knows, what is off by its books, what has expired', async () => {
  const isRunning = async (id: string) =>
    expect(await service.simulator().inspectVm({ id, host: '' })).toMatchObject({ power: 'running' })
  const [unknown, started] = [uuid(), await resources.newVm()]
  const expired = await resources.newVm({ ttl_seconds: 3600, on_expiry: 'delete' })
  await addStrayVm(service.database, unknown)
  await succeeded(await resources.act(started, { action: 'STOP' }))
  await service.sql(`UPDATE simulated_vms SET power = 'on' WHERE id = $1`, [started])
  await service.server.reconciler.reports()
  await service.clock.advance('2 hours')
  await service.server.reconciler.reports()
  await service.server.reconciler.expiry()
  expect(await service.simulator().inspectVm({ id: unknown, host: '' })).not.toBeNull()
  await isRunning(started)
  await isRunning(expired)
  // Hosts may have counted as silent when the clock was turned.
  await eventually(async () => {
    await service.server.reconciler.reports()
    return (await resources.stateOf(expired)) === 'STATE_RUNNING'
  })
})

test('an engine that has seen more than the store refuses it: another store may work with it', async () => {
  const own = await useService()
  const { newVm, act } = resourcesOf(own)
  const id = await newVm()
  await own.sql('UPDATE simulated_vms SET generation = generation + 7 WHERE id = $1', [id])
  await own.server.reconciler.reports()
  const { operation } = await act(id, { action: 'STOP' })
  expect((await own.ended(operation.operation_id)).state).toBe('FAILED')
})
