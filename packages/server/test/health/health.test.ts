import { gpuMetricNames, type Vm } from '@slipway/contract'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { GuestGpu } from '../../src/domain/guest/report.ts'
import type { HostReport } from '../../src/engines/engine.ts'

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
  expect(await check()).toMatchObject({
    state: 'quarantined',
    suspect: true,
    fault_count: faults.length,
    last_fault: { at: faults[0]!.at, xid: 79, source: 'host' },
  })
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

/** Changes what the simulated hosts report. Returns a function that ends this. */
function changeReports(change: (report: HostReport) => HostReport): () => void {
  const engine = service.simulator()
  const inventory = engine.inventory.bind(engine)
  engine.inventory = async function* (...args) {
    for await (const report of inventory(...args)) yield change(report)
  }
  return () => {
    engine.inventory = inventory
  }
}

test('a suspect GPU whose host reports no checks stays in quarantine until an operator frees it', async () => {
  const [id, sound] = [await newVm('unchecked'), await newVm('sound')]
  const [[gpu], [other]] = [await gpusOf(id), await gpusOf(sound)]
  const token = service.credentials.operator_key
  await service.levers.vms.xid(id, { xid: 79 })
  const find = async (gpuId: string) => {
    const { items } = await service.ok('adminHostList', { token })
    return items.flatMap(({ gpus }) => gpus).find((each) => each.id === gpuId)
  }
  const endChange = changeReports((report) => ({
    ...report,
    gpus: report.gpus.map(({ check, ...gpu }) => gpu),
  }))
  const before = (await find(other!.id))!.last_check
  for (const vm of [id, sound]) await act(vm, 'STOP')
  await pass(120)
  expect(await find(gpu!.id)).toMatchObject({
    ...{ state: 'quarantined', suspect: true },
    last_check: { passed: false, reasons: [expect.stringContaining('was not checked')] },
  })
  expect(await find(other!.id)).toMatchObject({ state: 'free', last_check: before })
  await service.ok('adminGpuUpdate', { token, params: { gpu_id: gpu!.id }, body: { state: 'free' } })
  expect(await find(gpu!.id)).toMatchObject({ state: 'free', suspect: false })
  endChange()
  for (const vm of [id, sound]) await drop(vm)
  await repairAll()
})

test('billing pauses while a GPU that a VM uses is missing from the report of its host', async () => {
  const id = await newVm('missing')
  const [gpu] = await service.sql<{ id: string; pci_address: string; host: string }>(
    'SELECT g.id, g.pci_address, h.name AS host FROM gpus g JOIN hosts h ON h.id = g.host_id WHERE vm_id = $1',
    [id],
  )
  const endChange = changeReports((report) => {
    const gpus = report.gpus.filter(({ pciAddress }) => pciAddress !== gpu!.pci_address)
    return report.name === gpu!.host ? { ...report, gpus } : report
  })
  await pass(60)
  const [lost] = await service.sql('SELECT lost_at IS NOT NULL AS lost FROM gpus WHERE id = $1', [gpu!.id])
  expect(lost).toEqual({ lost: true })
  expect((await show(id)).health).toMatchObject({
    status: 'unhealthy',
    reasons: [{ code: 'lost', source: 'host', action: 'REPLACE' }],
  })
  const before = (await show(id)).cost_usd
  await pass(1800)
  expect((await show(id)).cost_usd).toBe(before)
  endChange()
  await pass(60)
  const after = (await show(id)).cost_usd
  await pass(1800)
  expect((await show(id)).cost_usd).toBeCloseTo(after + 0.725, 3)
  await drop(id)
})

/** Makes the simulated guest of a VM report these states of its GPUs. Returns a function that ends this. */
function changeGpus(id: string, change: (gpu: GuestGpu) => GuestGpu): () => void {
  const engine = service.simulator()
  const sample = engine.sample.bind(engine)
  engine.sample = async function* () {
    for await (const { guest, ...each } of sample()) {
      const isChanged = guest && each.vmId === id
      yield { ...each, guest: isChanged ? { ...guest, gpus: guest.gpus.map(change) } : guest }
    }
  }
  return () => {
    engine.sample = sample
  }
}

test('the states that the driver reports make a VM degraded or unhealthy, and its GPU suspect', async () => {
  const id = await newVm('driver')
  const endReset = changeGpus(id, (gpu) => ({ ...gpu, recovery: 'gpu reset' }))
  await pass(60)
  expect((await show(id)).health).toMatchObject({
    status: 'degraded',
    reasons: [{ code: 'recovery_action', source: 'guest', action: 'RESET' }],
  })
  endReset()
  const endNone = changeGpus(id, (gpu) => ({ ...gpu, recovery: 'none' }))
  await pass(60)
  expect((await show(id)).health.status).toBe('healthy')
  endNone()
  const index = gpuMetricNames.indexOf('DCGM_FI_DEV_ROW_REMAP_FAILURE')
  const endFailure = changeGpus(id, (gpu) => ({ ...gpu, values: gpu.values.with(index, 1) }))
  await pass(60)
  expect((await show(id)).health).toMatchObject({
    status: 'unhealthy',
    reasons: [{ code: 'row_remap_failure', action: 'REPLACE' }],
  })
  expect(await gpusOf(id)).toMatchObject([{ suspect: true }])
  endFailure()
  await drop(id)
})

test('a guest adds at most 50 faults a day to a GPU', async () => {
  const id = await newVm('noisy')
  for (let count = 0; count < 52; count++) await service.levers.vms.xid(id, { xid: 300 + count })
  const [recorded] = await service.sql(
    `SELECT count(*)::integer AS faults FROM gpu_faults
     WHERE gpu_id = $1 AND source = 'guest' AND at > slipway_now() - interval '1 day'`,
    [(await gpusOf(id))[0]!.id],
  )
  expect(recorded).toEqual({ faults: 50 })
  await service.levers.vms.xid(id, { xid: 79, source: 'host' })
  expect((await show(id)).health.status).toBe('unhealthy')
  await drop(id)
  await repairAll()
})
