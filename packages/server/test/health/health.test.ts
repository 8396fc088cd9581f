import type { Vm } from '@slipway/contract'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService(withLevers, '2026-11-20T10:00:00Z')
})
afterAll(() => service?.close())

const pass = (seconds: number) => service.levers.clock.advance({ seconds })
/** Ends the faults of all GPUs. */
async function repairAll() {
  for (const { id } of await service.sql<{ id: string }>(
    `SELECT DISTINCT h.id FROM hosts h JOIN simulated_xids x ON x.location = h.location AND x.host = h.name`,
  ))
    await service.levers.hosts.recover(id)
}

async function newVm(name: string, members: object = {}): Promise<string> {
  const { operation } = await service.ok('vmCreate', { body: vmBody({ name, ...members }) })
  await service.ended(operation.operation_id)
  return operation.metadata.id
}

const show = (vm_id: string): Promise<Vm> => service.ok('vmGet', { params: { vm_id } })
const drop = (vm_id: string) => service.ok('vmDelete', { params: { vm_id } })

async function act(vm_id: string, action: 'RESET' | 'REPLACE' | 'STOP' | 'START') {
  const { operation } = await service.ok('vmUpdate', { params: { vm_id }, body: { action } })
  return service.ended(operation.operation_id)
}

async function eventsOf(id: string) {
  const { items } = await service.ok('eventList', { query: { resource_id: id } as never })
  return items.filter(({ type }) => /^(gpu\.|vm\.(health|replace))/.test(type)).toReversed()
}

const gpusOf = (id: string) =>
  service.sql<{ id: string; suspect: boolean; fault_count: number }>(
    'SELECT id, suspect_since IS NOT NULL AS suspect, fault_count FROM gpus WHERE vm_id = $1 ORDER BY pci_address',
    [id],
  )

test('an application error is an event and leaves the VM healthy', async () => {
  const id = await newVm('application')
  await service.levers.vms.xid(id, { xid: 31 })
  expect((await show(id)).health).toEqual({
    status: 'healthy',
    since: (await show(id)).started_at,
    reasons: [],
  })
  expect(await eventsOf(id)).toMatchObject([
    { type: 'gpu.fault', data: { code: 'xid_31', gpu_index: 0, source: 'guest', action: '' } },
  ])
  expect(await gpusOf(id)).toMatchObject([{ suspect: false, fault_count: 1 }])
  // An error that is not in the table says nothing about the GPU either.
  await service.levers.vms.xid(id, { xid: 900 })
  expect((await show(id)).health.status).toBe('healthy')
  await drop(id)
})

test('a scrape has a counter for each XID', async () => {
  const id = await newVm('counted')
  for (const xid of [31, 79]) await service.levers.vms.xid(id, { xid })
  const path = `/v0.1/projects/${service.credentials.project_id}/metrics/scrape`
  const { body } = await service.request('GET', path)
  const counters = new RegExp(`slipway_gpu_xid_total{vm_id="${id}",[^}]*xid="(\\d+)"} (\\d+)`, 'g')
  expect(Array.from(String(body).matchAll(counters), ([, xid, count]) => [xid, count])).toEqual([
    ['31', '1'],
    ['79', '1'],
  ])
  await drop(id)
  await repairAll()
})

test('a reset fixes a degraded VM, but not if the error occurs again after two resets', async () => {
  const id = await newVm('degraded')
  for (const status of ['degraded', 'degraded', 'unhealthy']) {
    await service.levers.vms.xid(id, { xid: 48 })
    expect((await show(id)).health).toMatchObject({ status, reasons: [{ code: 'xid_48', source: 'guest' }] })
    await pass(60)
    await act(id, 'RESET')
    expect((await show(id)).health.status).toBe('healthy')
    await pass(60)
  }
  expect((await eventsOf(id)).filter(({ type }) => type === 'vm.health_changed').at(-1)?.data).toMatchObject({
    reasons: [{ action: 'REPLACE', message: expect.stringContaining('again after two resets') }],
  })
  await act(id, 'STOP')
  expect((await show(id)).health.status).toBe('unknown')
  await drop(id)
})

test('a repeated report of an error changes nothing', async () => {
  const id = await newVm('repeated')
  await service.levers.vms.xid(id, { xid: 79, source: 'host' })
  const before = [await eventsOf(id), await show(id), await gpusOf(id)] as const
  expect(before[0].map(({ type }) => type)).toEqual(['gpu.fault', 'vm.health_changed'])
  await pass(600)
  expect(await eventsOf(id)).toEqual(before[0])
  expect((await show(id)).health).toEqual(before[1].health)
  expect(await gpusOf(id)).toEqual(before[2])
  expect(before[2]).toMatchObject([{ suspect: true }])
  await drop(id)
  await repairAll()
})

test('a fault reported only by the guest does not change billing; a fault found by the host pauses it', async () => {
  const [claimed, proven] = [await newVm('claimed'), await newVm('proven')]
  await pass(1800)
  await service.levers.vms.xid(claimed, { xid: 79, source: 'guest' })
  await service.levers.vms.xid(proven, { xid: 79, source: 'host' })
  for (const id of [claimed, proven])
    expect((await show(id)).health).toMatchObject({ status: 'unhealthy', reasons: [{ action: 'REPLACE' }] })
  const [changed] = (await eventsOf(proven)).filter(({ type }) => type === 'vm.health_changed')
  expect(changed?.data.billing_paused_at).toBe(changed?.created_at)
  expect((await eventsOf(claimed)).at(-1)?.data).not.toHaveProperty('billing_paused_at')
  const costs = async () => [(await show(claimed)).cost_usd, (await show(proven)).cost_usd] as const
  const before = await costs()
  await pass(1800)
  const after = await costs()
  expect(after[0]).toBeCloseTo(before[0] + 0.725, 3)
  expect(after[1]).toBe(before[1])
  // Other GPUs are in stock, so the VM is billed again one hour after the event.
  await pass(1800)
  expect((await show(proven)).cost_usd).toBe(before[1])
  await pass(3600)
  expect((await show(proven)).cost_usd).toBeCloseTo(before[1] + 1.45, 3)
  expect((await eventsOf(proven)).at(-1)).toMatchObject({
    type: 'vm.health_changed',
    data: { billing_paused_at: '' },
  })
  for (const id of [claimed, proven]) await drop(id)
  await repairAll()
})

test('without other GPUs in stock, billing pauses for at most a day', async () => {
  const id = await newVm('scarce')
  // Let the GPUs of deleted VMs return to stock before the capacity is set.
  await pass(0)
  await service.levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 0 })
  await service.levers.vms.xid(id, { xid: 0, source: 'host' })
  expect((await show(id)).health.reasons).toMatchObject([{ code: 'lost' }])
  const before = (await show(id)).cost_usd
  await pass(86_400)
  expect((await show(id)).cost_usd).toBe(before)
  await pass(3600)
  expect((await show(id)).cost_usd).toBeCloseTo(before + 1.45, 3)
  await drop(id)
  await repairAll()
  await service.levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 8 })
})

test('billing continues when the host finds the GPU again', async () => {
  const id = await newVm('back')
  await service.levers.vms.xid(id, { xid: 79, source: 'host' })
  const before = (await show(id)).cost_usd
  await pass(600)
  await repairAll()
  await pass(60)
  await pass(3600)
  expect((await show(id)).cost_usd).toBeCloseTo(before + (1.45 * 3660) / 3600, 3)
  // The guest may still not see the GPU. Only a reset shows whether it does.
  expect((await show(id)).health.status).toBe('unhealthy')
  await act(id, 'RESET')
  expect((await show(id)).health.status).toBe('healthy')
  await drop(id)
})

test('a suspect GPU returns to stock only after it passes a check', async () => {
  const id = await newVm('suspect')
  const [gpu] = await gpusOf(id)
  const token = service.credentials.operator_key
  await service.levers.vms.xid(id, { xid: 79, source: 'host' })
  await act(id, 'STOP')
  await pass(120)
  const admin = () =>
    service.sql<{ state: string; is_held_back: boolean; suspect: boolean; has_passed_check: boolean | null }>(
      'SELECT state, is_held_back, suspect_since IS NOT NULL AS suspect, has_passed_check FROM gpus WHERE id = $1',
      [gpu!.id],
    )
  const failed = { state: 'quarantined', is_held_back: true, suspect: true, has_passed_check: false }
  expect(await admin()).toEqual([failed])
  const { items: faults } = await service.ok('adminGpuFaultList', { token, params: { gpu_id: gpu!.id } })
  expect(faults[0]).toMatchObject({ xid: 79, source: 'host', vm_id: id })
  // A check before the repair fails again, and one after it returns the GPU to stock.
  const check = () => service.ok('adminGpuCheck', { token, params: { gpu_id: gpu!.id } })
  expect(await check()).toMatchObject({ state: 'quarantined', suspect: true, fault_count: faults.length })
  await pass(60)
  expect(await admin()).toEqual([failed])
  await repairAll()
  await check()
  await pass(60)
  expect(await admin()).toEqual([
    { state: 'free', is_held_back: false, suspect: false, has_passed_check: true },
  ])
  const log = await service.ok('adminEventList', { token, query: { resource_id: gpu!.id } as never })
  expect(
    log.items
      .map(({ type }) => type)
      .toReversed()
      .slice(-5),
  ).toEqual(['gpu.check_failed', 'gpu.updated', 'gpu.check_failed', 'gpu.updated', 'gpu.returned'])
  await drop(id)
})
