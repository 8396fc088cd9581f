import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../src/engines/engine.ts'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
beforeAll(async () => {
  service = await startService()
  resources = resourcesOf(service)
}, 60_000)
afterAll(() => service.close())
afterEach(async () => {
  await settle(service)
  await checkInvariants(service)
  await resources.clear()
  await settle(service)
  await checkInvariants(service)
})

const hostOf = async (vmId: string) => {
  const [row] = await service.sql<{ id: string; name: string }>(
    'SELECT h.id, h.name FROM vms v JOIN hosts h ON h.id = v.host_id WHERE v.id = $1',
    [vmId],
  )
  return row!
}
const reports = () => service.server.reconciler.reports()
const until = (vmId: string, state: string) =>
  eventually(async () => {
    await reports()
    return (await resources.stateOf(vmId)) === state
  })
const act = async (vmId: string, action: string) => {
  const { operation } = await resources.act(vmId, { action })
  return service.ended(operation.operation_id)
}
const isMetered = async (vmId: string) =>
  (await service.sql('SELECT FROM usage_intervals WHERE resource_id = $1 AND upper_inf(period)', [vmId]))
    .length > 0
const eventsOf = async (vmId: string) =>
  service.sql<{ type: string; data: { detail?: string } }>(
    'SELECT type, data FROM events WHERE resource_id = $1 ORDER BY seq',
    [vmId],
  )
const engineHas = async (vmId: string) =>
  (await service.simulator().inspectVm({ id: vmId, host: '' })) !== null

const failsForItsDisk = {
  state: 'FAILED',
  result: { code: 'engine_error', message: expect.stringMatching(/OS disk .* is lost/) },
}

test('a VM whose OS disk is lost has crashed, says why, costs nothing, and is never quietly made anew', async () => {
  const id = await resources.newVm()
  await service.simulator().reinstallHost((await hostOf(id)).name)
  await until(id, 'STATE_CRASHED')
  const crashed = (await eventsOf(id)).find(({ type }) => type === 'vm.crashed')
  expect(crashed?.data.detail).toMatch(/no longer has its OS disk/)
  expect(await isMetered(id)).toBe(false)

  expect(await act(id, 'RESET')).toMatchObject(failsForItsDisk)
  expect(await resources.stateOf(id)).toBe('STATE_CRASHED')
  expect(await isMetered(id)).toBe(false)
  expect(await act(id, 'STOP')).toMatchObject({ state: 'SUCCEEDED' })
  expect(await act(id, 'START')).toMatchObject(failsForItsDisk)
  expect(await resources.stateOf(id)).toBe('STATE_SHUTOFF')
  expect(await engineHas(id)).toBe(false)
  await resources.succeeded(await resources.removeVm(id))
})

test('a VM whose OS disk is lost while it is shut off does not start, noticed before or not', async () => {
  const disk = await resources.newDisk()
  const [unnoticed, noticed] = [
    await resources.newVm(),
    await resources.newVm({ disks: [{ disk_id: disk }] }),
  ]
  for (const id of [unnoticed, noticed]) expect(await act(id, 'STOP')).toMatchObject({ state: 'SUCCEEDED' })
  await service.simulator().reinstallHost((await hostOf(unnoticed)).name)
  expect(await act(unnoticed, 'START')).toMatchObject(failsForItsDisk)
  expect(await resources.stateOf(unnoticed)).toBe('STATE_SHUTOFF')

  await service.simulator().reinstallHost((await hostOf(noticed)).name)
  await eventually(async () => {
    await reports()
    return (await eventsOf(noticed)).find(({ type }) => type === 'vm.os_disk_lost')
  })
  expect(await act(noticed, 'START')).toMatchObject(failsForItsDisk)
  expect(await engineHas(noticed)).toBe(false)
  // Its data disk is not lost with it.
  await resources.succeeded(await resources.detach(noticed, disk))
  await resources.succeeded(await resources.removeDisk(disk))
})

test('a VM whose OS disk shows again is billed again, and comes up by a reset', async () => {
  const id = await resources.newVm()
  await service.sql('UPDATE simulated_vms SET is_removed = true WHERE id = $1', [id])
  await until(id, 'STATE_CRASHED')
  expect(await isMetered(id)).toBe(false)
  await service.sql('UPDATE simulated_vms SET is_removed = false WHERE id = $1', [id])
  await eventually(async () => {
    await reports()
    return isMetered(id)
  })
  expect((await eventsOf(id)).map(({ type }) => type)).toContain('vm.os_disk_found')
  expect(await act(id, 'RESET')).toMatchObject({ state: 'SUCCEEDED' })
  expect(await resources.stateOf(id)).toBe('STATE_RUNNING')
})

/** An engine whose inventory hangs, deaf to its signal; everything else it does. */
function hangInventory(location: string): () => void {
  const engines = service.server.services.engines as Map<string, Engine>
  const healthy = engines.get(location)!
  const hung = Object.assign(Object.create(healthy) as Engine, {
    async *inventory() {
      await new Promise(() => {})
    },
  })
  engines.set(location, hung)
  service.server.services.stepMs = 300
  return () => {
    engines.set(location, healthy)
    delete service.server.services.stepMs
  }
}

test('an engine whose inventory hangs keeps neither its own lost hosts from being marked nor other locations', async () => {
  const [east, west] = [await resources.newVm(), await resources.newVm({ location: 'us-west1-a' })]
  const heal = hangInventory('us-west1-a')
  try {
    await service.clock.advance('31 seconds')
    await service.simulator().crashVm(east)
    await until(east, 'STATE_CRASHED')
    await until(west, 'STATE_UNREACHABLE')
  } finally {
    heal()
  }
  await until(west, 'STATE_RUNNING')
})
