import { isDeepStrictEqual } from 'node:util'
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

/**
 * The reconciler adopts the engines' generations when it reads their reports; an operation that starts earlier is
 * retried.
 */
const succeeded = async ({ operation }: { operation: { operation_id: string } }) =>
  expect((await service.advanceUntilEnded(operation.operation_id)).state).toBe('SUCCEEDED')

test('a restored database can change VMs and disks that changed after the backup, and applies its own firewall rules', async () => {
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
  // The rules may be applied by a task that began before these calls.
  await eventually(async () => isDeepStrictEqual(await firewall(), rules))
  await succeeded(await resources.act(id, { action: 'STOP' }))
  await succeeded(await resources.grow(diskId, '20GiB'))
})

test('a restored database completes an operation that starts before the engine’s report is read', async () => {
  const id = await resources.newVm()
  await service.sql('UPDATE simulated_vms SET generation = generation + 7 WHERE id = $1', [id])
  await succeeded(await resources.act(id, { action: 'STOP' }))
})

test('a restored database completes a creation that is past its deadline', async () => {
  await service.sql(
    `INSERT INTO simulated_faults (method, kind, delay_ms, remaining) VALUES ('ensureVm', 'fail', 0, 1000)`,
  )
  const { operation } = await service.ok('vmCreate', { body: vmBody() })
  await service.clock.advance('20 minutes')
  await service.sql('DELETE FROM simulated_faults')
  await succeeded({ operation })
})

test('a restored database stops and removes nothing: neither unknown VMs, nor VMs recorded as stopped, nor expired VMs', async () => {
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
  // Hosts may have been marked as down when the clock was advanced.
  await eventually(async () => {
    await service.server.reconciler.reports()
    return (await resources.stateOf(expired)) === 'STATE_RUNNING'
  })
})

test('an engine whose state is newer than the database rejects calls, because another database may be using the engine', async () => {
  const own = await useService()
  const { newVm, act } = resourcesOf(own)
  const id = await newVm()
  await own.sql('UPDATE simulated_vms SET generation = generation + 7 WHERE id = $1', [id])
  await own.server.reconciler.reports()
  const { operation } = await act(id, { action: 'STOP' })
  expect((await own.ended(operation.operation_id)).state).toBe('FAILED')
})
