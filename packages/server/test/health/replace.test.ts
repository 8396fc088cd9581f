import type { Vm } from '@slipway/contract'
import { checkInvariants } from '@slipway/testing/invariants.ts'
import { ownerToken } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { groupBody } from '../support/fleets/small-fleet.ts'

let service: TestService
beforeAll(async () => {
  service = await startService((config) => {
    withLevers(config)
    config.locations[1]!.storage = 'local'
  })
})
afterAll(() => service?.close())
beforeEach(() => service.levers.reset())

const pass = (seconds: number) => service.levers.clock.advance({ seconds })

async function newVm(name: string, members: object = {}): Promise<Vm> {
  const { operation } = await service.ok('vmCreate', { body: vmBody({ name, ...members }) })
  await service.ended(operation.operation_id)
  return show(operation.metadata.id)
}

const show = (vm_id: string): Promise<Vm> => service.ok('vmGet', { params: { vm_id } })
const patch = (vm_id: string, body: object) =>
  service.call('vmUpdate', { params: { vm_id }, body: body as never })
async function replace(vm_id: string) {
  const { operation } = await service.ok('vmUpdate', { params: { vm_id }, body: { action: 'REPLACE' } })
  return service.ended(operation.operation_id)
}
const gpusOf = async (id: string) =>
  (await service.sql<{ id: string }>('SELECT id FROM gpus WHERE vm_id = $1 ORDER BY id', [id])).map(
    (gpu) => gpu.id,
  )
const used = async () =>
  (await service.sql<{ used: number }>(`SELECT used::integer FROM quotas WHERE name = 'a100_gpus'`))[0]?.used
async function eventsOf(id: string): Promise<string[]> {
  const { items } = await service.ok('eventList', { query: { resource_id: id } as never })
  return items.map(({ type }) => type).toReversed()
}
/** The fields that a replacement keeps. */
const kept = ({ id, name, network_interfaces, disks, ssh_public_keys, image }: Vm) => ({
  ...{ id, name, network_interfaces, ssh_public_keys, image },
  disks: disks.map(({ updated_at, ...disk }) => disk),
})

test('REPLACE keeps id, disks and addresses on other GPUs, and uses the quota only once', async () => {
  const vm = await newVm('moved', { type: 'a100.2x', new_disks: [{ size: '10GiB' }] })
  const before = await gpusOf(vm.id)
  expect(await replace(vm.id)).toMatchObject({ state: 'SUCCEEDED', metadata: { operation_name: 'REPLACE' } })
  const after = await show(vm.id)
  expect(kept(after)).toEqual(kept(vm))
  expect(after).toMatchObject({ state: 'STATE_RUNNING', last_replaced_at: expect.stringMatching(/Z$/) })
  const gpus = await gpusOf(vm.id)
  expect(gpus).toHaveLength(2)
  expect(gpus.filter((gpu) => before.includes(gpu))).toEqual([])
  expect(await used()).toBe(2)
  expect((await eventsOf(vm.id)).slice(-6)).toEqual([
    'vm.stopping',
    'vm.shutoff',
    'vm.starting',
    'vm.replaced',
    'vm.running',
    'operation.succeeded',
  ])
  await pass(120)
  await checkInvariants(service)
})

test('without other GPUs in stock, REPLACE is refused and the VM keeps running', async () => {
  const vm = await newVm('alone')
  await service.levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 0 })
  expect(await patch(vm.id, { action: 'REPLACE' })).toMatchObject({
    status: 409,
    body: { code: 'out_of_stock' },
  })
  expect((await show(vm.id)).state).toBe('STATE_RUNNING')
  expect(await eventsOf(vm.id)).not.toContain('vm.stopping')
  const stopped = await patch(vm.id, { action: 'STOP' })
  await service.ended((stopped.body as { operation: { operation_id: string } }).operation.operation_id)
  expect(await patch(vm.id, { action: 'REPLACE' })).toMatchObject({ status: 409, body: { code: 'conflict' } })
})

test('with local storage, REPLACE uses other GPUs of the same host, and none of other hosts', async () => {
  const hostOf = async (id: string) =>
    (await service.sql<{ host_id: string }>('SELECT DISTINCT host_id FROM gpus WHERE vm_id = $1', [id]))[0]!
      .host_id
  const vm = await newVm('local', { location: 'us-west1-a', type: 'a100.2x' })
  const [host, before] = [await hostOf(vm.id), await gpusOf(vm.id)]
  expect(await replace(vm.id)).toMatchObject({ state: 'SUCCEEDED' })
  expect(await hostOf(vm.id)).toBe(host)
  expect((await gpusOf(vm.id)).filter((gpu) => before.includes(gpu))).toEqual([])
  const whole = await newVm('whole', { location: 'us-west1-a', type: 'a100.8x' })
  expect(await patch(whole.id, { action: 'REPLACE' })).toMatchObject({
    status: 409,
    body: { code: 'out_of_stock' },
  })
})

test('a member of a group keeps its rank and address after REPLACE', async () => {
  const { operation } = await service.ok('instanceGroupCreate', {
    body: groupBody(2) as never,
  })
  await service.ended(operation.operation_id)
  const params = { instance_group_id: operation.metadata.id }
  const { members } = await service.ok('instanceGroupGet', { params })
  const second = members.find(({ rank }) => rank === 1)!
  const before = await gpusOf(second.vm_id)
  expect(await replace(second.vm_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect((await service.ok('instanceGroupGet', { params })).members).toEqual(members)
  expect(await gpusOf(second.vm_id)).not.toEqual(before)
})

test('a VM that does not start on its new GPUs is stopped and releases all GPUs', async () => {
  const vm = await newVm('failing')
  await service.levers.faults.create({
    on: 'vm-replace',
    step: 'boot',
    effect: 'reject',
    code: 'boot_failed',
  })
  expect(await replace(vm.id)).toMatchObject({ state: 'FAILED' })
  expect(await show(vm.id)).toMatchObject({ state: 'STATE_SHUTOFF', last_replaced_at: '' })
  expect(await eventsOf(vm.id)).toContain('vm.replace_failed')
  expect([await gpusOf(vm.id), await used()]).toEqual([[], 0])
  await pass(120)
  await checkInvariants(service)
})

test('a deletion during a replacement releases the GPUs that were held', async () => {
  const vm = await newVm('deleted')
  await service.levers.faults.create({ on: 'vm-replace', step: 'power_off', effect: 'delay', delay_ms: 500 })
  await service.ok('vmUpdate', { params: { vm_id: vm.id }, body: { action: 'REPLACE' } })
  const { operation } = await service.ok('vmDelete', { params: { vm_id: vm.id } })
  await service.advanceUntilEnded(operation.operation_id)
  await pass(120)
  const held = await service.sql(`SELECT id FROM gpus WHERE state = 'held'`)
  expect([held, await used()]).toEqual([[], 0])
})

test('a VM with on_gpu_fault replace is replaced as soon as a GPU is unhealthy', async () => {
  const vm = await newVm('policy', { on_gpu_fault: 'replace' })
  const other = await newVm('none')
  const before = await gpusOf(vm.id)
  await service.levers.vms.xid(vm.id, { xid: 79 })
  await service.levers.vms.xid(other.id, { xid: 79 })
  await pass(60)
  const after = await show(vm.id)
  expect(kept(after)).toEqual(kept(vm))
  expect(after).toMatchObject({ state: 'STATE_RUNNING', health: { status: 'healthy' } })
  expect(await gpusOf(vm.id)).not.toEqual(before)
  expect(await show(other.id)).toMatchObject({ health: { status: 'unhealthy' }, last_replaced_at: '' })
  // The GPU passes its check, because the guest's report was false.
  const [gpu] = await service.sql<{ state: string }>('SELECT state FROM gpus WHERE id = $1', [before[0]])
  expect(gpu?.state).toBe('free')
})

test('a VM is replaced automatically at most twice a day', async () => {
  const vm = await newVm('unlucky')
  expect((await patch(vm.id, { on_gpu_fault: 'replace' })).status).toBe(200)
  for (const times of [1, 2, 2]) {
    await service.levers.vms.xid(vm.id, { xid: 79 })
    await pass(60)
    expect((await eventsOf(vm.id)).filter((type) => type === 'vm.replaced')).toHaveLength(times)
  }
  expect((await show(vm.id)).health.status).toBe('unhealthy')
})

test('without GPUs in stock, on_gpu_fault replace creates a capacity request that is first in its queue', async () => {
  const vm = await newVm('patient', { on_gpu_fault: 'replace' })
  await service.levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 0 })
  const waiting = await service.ok('capacityRequestCreate', {
    body: { vm: vmBody({ name: 'waiting' }) } as never,
  })
  const before = await gpusOf(vm.id)
  await service.levers.vms.xid(vm.id, { xid: 79, source: 'host' })
  await pass(60)
  expect(await show(vm.id)).toMatchObject({ state: 'STATE_RUNNING', health: { status: 'unhealthy' } })
  expect(await gpusOf(vm.id)).toEqual(before)
  const { items } = await service.ok('capacityRequestList')
  expect(items).toMatchObject([
    { position: 1, request: { replace_vm_id: vm.id }, state: 'waiting' },
    { id: waiting.id, position: 2 },
  ])
  await service.levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 1 })
  await pass(60)
  expect(await show(vm.id)).toMatchObject({ state: 'STATE_RUNNING', health: { status: 'healthy' } })
  expect(await gpusOf(vm.id)).not.toEqual(before)
})

test('a request for replacement GPUs waits during a mass fault, although GPUs are free', async () => {
  const vm = await newVm('early', { on_gpu_fault: 'replace' })
  const others = [await newVm('also-1'), await newVm('also-2')]
  await service.levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 0 })
  await service.levers.vms.xid(vm.id, { xid: 79 })
  await pass(60)
  const request = async () => (await service.ok('capacityRequestList')).items[0]
  expect(await request()).toMatchObject({ state: 'waiting', request: { replace_vm_id: vm.id } })
  for (const { id } of others) await service.levers.vms.xid(id, { xid: 79 })
  await service.levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 1 })
  await pass(120)
  expect(await show(vm.id)).toMatchObject({ health: { status: 'unhealthy' }, last_replaced_at: '' })
  expect(await request()).toMatchObject({ state: 'waiting', gpus_held: 0 })
  for (const { id: vm_id } of others) {
    const { operation } = await service.ok('vmUpdate', { params: { vm_id }, body: { action: 'RESET' } })
    await service.ended(operation.operation_id)
  }
  await pass(60)
  expect(await show(vm.id)).toMatchObject({ state: 'STATE_RUNNING', health: { status: 'healthy' } })
})

test('a request for replacement GPUs waits if the VM was already replaced twice on the same day', async () => {
  const vm = await newVm('third', { on_gpu_fault: 'replace' })
  const { operation } = await service.ok('vmUpdate', { params: { vm_id: vm.id }, body: { action: 'RESET' } })
  await service.ended(operation.operation_id)
  await service.levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 0 })
  await service.levers.vms.xid(vm.id, { xid: 79 })
  await pass(60)
  // The creation and the reset stand for two replacements that took place while the request was waiting.
  await service.sql(`UPDATE operations SET kind = 'vm-replace', actor = 'system' WHERE resource_id = $1`, [
    vm.id,
  ])
  await service.levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 1 })
  await pass(120)
  expect(await show(vm.id)).toMatchObject({ health: { status: 'unhealthy' }, last_replaced_at: '' })
  await service.sql(
    `UPDATE operations SET started_at = started_at - interval '1 day' WHERE resource_id = $1`,
    [vm.id],
  )
  await pass(60)
  expect(await show(vm.id)).toMatchObject({ state: 'STATE_RUNNING', health: { status: 'healthy' } })
})

test('three unhealthy VMs among many are replaced, but not if a fifth of all VMs is unhealthy', async () => {
  const { operation } = await service.ok('instanceGroupCreate', {
    body: groupBody(30, {}, { type: 'a40.1x' }) as never,
  })
  await service.ended(operation.operation_id)
  const { members } = await service.ok('instanceGroupGet', {
    params: { instance_group_id: operation.metadata.id },
  })
  const vms = [await newVm('few-1', { on_gpu_fault: 'replace' }), await newVm('few-2'), await newVm('few-3')]
  for (const { id } of vms.toReversed()) await service.levers.vms.xid(id, { xid: 79 })
  await pass(60)
  const { last_replaced_at } = await show(vms[0]!.id)
  expect(last_replaced_at).not.toBe('')
  for (const { vm_id } of members.slice(0, 5)) await service.levers.vms.xid(vm_id, { xid: 79 })
  await service.levers.vms.xid(vms[0]!.id, { xid: 79 })
  await pass(60)
  expect(await show(vms[0]!.id)).toMatchObject({ health: { status: 'unhealthy' }, last_replaced_at })
})

test('when many VMs are unhealthy at the same time, none is replaced and operators get one alert', async () => {
  const vms = [
    await newVm('mass-1', { on_gpu_fault: 'replace' }),
    await newVm('mass-2'),
    await newVm('mass-3'),
  ]
  for (const { id } of vms.toReversed()) await service.levers.vms.xid(id, { xid: 79 })
  await pass(300)
  expect(await show(vms[0]!.id)).toMatchObject({ health: { status: 'unhealthy' }, last_replaced_at: '' })
  const { items } = await service.ok('adminAlertList', { token: service.credentials.operator_key })
  expect(items.filter(({ kind }) => kind === 'mass_gpu_fault')).toMatchObject([{ name: 'us-east1-a' }])
  const own = await service.ok('organizationAlertList', { token: await ownerToken(service) })
  expect(own.items.filter(({ kind }) => kind === 'unhealthy')).toHaveLength(3)
})
