import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { GuestGpu, GuestReport } from '../../src/domain/guest/report.ts'

const policy = { min_gpu_utilization: 5, window_seconds: 600, action: 'stop' as const }

let service: TestService
beforeAll(async () => {
  service = await startService(withLevers, '2026-11-20T10:00:00Z')
})
afterAll(() => service?.close())

const advance = (minutes: number) => service.levers.clock.advance({ seconds: minutes * 60 })
const report: TestService['levers']['vms']['metrics'] = (id, metrics) =>
  service.levers.vms.metrics(id, metrics)
const idle = { gpu_utilization: 1, ssh_sessions: 0 }

async function newVm(name: string, idle_policy: object = policy, type = 'a100.1x'): Promise<string> {
  const { operation } = await service.ok('vmCreate', { body: vmBody({ name, idle_policy, type }) })
  await service.ended(operation.operation_id)
  return operation.metadata.id
}

const show = (vm_id: string) => service.ok('vmGet', { params: { vm_id } })
const change = (vm_id: string, idle_policy: object | null) =>
  service.call('vmUpdate', { params: { vm_id }, body: { idle_policy } })

async function idleEvents(id: string): Promise<string[]> {
  const { items } = await service.ok('eventList', { query: { resource_id: id } as never })
  return items
    .map(({ type }) => type)
    .filter((type) => type.startsWith('vm.idle'))
    .toReversed()
}

test('the stop of an idle VM is announced when its window is full, and happens 10 minutes later', async () => {
  const id = await newVm('idle')
  expect((await show(id)).idle_policy).toEqual({ ...policy, ignore_ssh: false })
  await report(id, idle)
  await advance(9)
  expect(await idleEvents(id)).toEqual([])
  expect((await show(id)).idle_since).not.toBe('')
  await advance(2)
  expect(await idleEvents(id)).toEqual(['vm.idle_stopping'])
  await advance(8)
  expect((await show(id)).state).toBe('STATE_RUNNING')
  await advance(3)
  expect((await show(id)).state).toBe('STATE_SHUTOFF')
  expect(await idleEvents(id)).toEqual(['vm.idle_stopping'])
  // After the VM is started again, a whole window passes before its stop is announced again.
  const started = await service.ok('vmUpdate', { params: { vm_id: id }, body: { action: 'START' } })
  await service.ended(started.operation.operation_id)
  await advance(8)
  expect(await idleEvents(id)).toEqual(['vm.idle_stopping'])
  await service.ok('vmDelete', { params: { vm_id: id } })
})

test('one busy sample or a change of the policy cancels the stop of an idle VM', async () => {
  const [busy, changed] = [await newVm('busy'), await newVm('changed')]
  for (const id of [busy, changed]) await report(id, idle)
  await advance(13)
  for (const id of [busy, changed]) expect(await idleEvents(id)).toEqual(['vm.idle_stopping'])
  await report(busy, { gpu_utilization: 90 })
  await advance(1)
  expect((await show(busy)).idle_since).toBe('')
  await report(busy, idle)
  expect((await change(changed, { ...policy, window_seconds: 3600 })).status).toBe(200)
  await advance(9)
  for (const id of [busy, changed]) {
    expect((await show(id)).state).toBe('STATE_RUNNING')
    await service.ok('vmDelete', { params: { vm_id: id } })
  }
})

test('a VM is not idle while a session is open, and a silent guest is never stopped', async () => {
  const [used, silent, ignoring] = [
    await newVm('used'),
    await newVm('silent'),
    await newVm('ignoring', { ...policy, action: 'notify', ignore_ssh: true }),
  ]
  await report(used, { gpu_utilization: 0, ssh_sessions: 1 })
  await report(ignoring, { gpu_utilization: 0, ssh_sessions: 1 })
  await report(silent, { silent: true })
  await advance(14)
  expect(await idleEvents(used)).toEqual([])
  expect(await idleEvents(silent)).toEqual(['vm.idle_unknown'])
  expect(await idleEvents(ignoring)).toEqual(['vm.idle'])
  for (const id of [used, silent, ignoring]) {
    expect((await show(id)).state).toBe('STATE_RUNNING')
    await service.ok('vmDelete', { params: { vm_id: id } })
  }
})

test('a guest that falls silent after the announcement is not stopped', async () => {
  const id = await newVm('lost')
  await report(id, idle)
  await advance(12)
  expect(await idleEvents(id)).toEqual(['vm.idle_stopping'])
  await report(id, { silent: true })
  await advance(11)
  expect((await show(id)).state).toBe('STATE_RUNNING')
  await service.ok('vmDelete', { params: { vm_id: id } })
})

/** Changes what the simulated guest of a VM reports. Returns a function that ends this. */
function changeReport(id: string, change: (guest: GuestReport) => GuestReport | null): () => void {
  const engine = service.simulator()
  const sample = engine.sample.bind(engine)
  engine.sample = async function* () {
    for await (const each of sample())
      yield each.vmId === id && each.guest ? { ...each, guest: change(each.guest) } : each
  }
  return () => {
    engine.sample = sample
  }
}

test('a VM with one busy GPU, or whose guest reports fewer GPUs than it has, is not idle', async () => {
  const [partly, fewer] = [await newVm('partly', policy, 'a100.2x'), await newVm('fewer', policy, 'a100.2x')]
  for (const id of [partly, fewer]) await report(id, idle)
  const busy = (gpu: GuestGpu) => ({ ...gpu, values: gpu.values.with(0, 90) })
  const ends = [
    changeReport(partly, (guest) => ({ ...guest, gpus: [guest.gpus[0]!, busy(guest.gpus[1]!)] })),
    changeReport(fewer, (guest) => ({ ...guest, gpus: guest.gpus.slice(0, 1) })),
  ]
  await advance(23)
  for (const id of [partly, fewer]) {
    expect(await idleEvents(id)).not.toContain('vm.idle_stopping')
    expect(await show(id)).toMatchObject({ state: 'STATE_RUNNING', idle_since: '' })
    await service.ok('vmDelete', { params: { vm_id: id } })
  }
  for (const end of ends.toReversed()) end()
})

test('a VM is not stopped if less than 90% of its window has samples', async () => {
  const id = await newVm('gaps')
  await report(id, idle)
  let samples = 0
  const end = changeReport(id, (guest) => (samples++ % 3 === 2 ? null : guest))
  await advance(25)
  expect(samples).toBeGreaterThan(20)
  expect(await idleEvents(id)).toEqual(['vm.idle_unknown'])
  expect((await show(id)).state).toBe('STATE_RUNNING')
  end()
  await service.ok('vmDelete', { params: { vm_id: id } })
})

test('an idle policy needs an image whose guest reports, and values within their bounds', async () => {
  const refused = await service.call('vmCreate', {
    body: vmBody({ image: 'debian12:latest', idle_policy: policy }),
  })
  expect(refused).toMatchObject({ status: 400, body: { message: expect.stringContaining('slipway-guest') } })
  const id = await newVm('bounds')
  for (const wrong of [{ min_gpu_utilization: 51 }, { window_seconds: 599 }, { action: 'delete' }])
    expect((await change(id, { ...policy, ...wrong })).status).toBe(400)
  expect((await change(id, null)).status).toBe(200)
  expect((await show(id)).idle_policy).toBeNull()
  await service.ok('vmDelete', { params: { vm_id: id } })
})
