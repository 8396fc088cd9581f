import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService(withLevers)
})
afterAll(() => service.close())
afterEach(() => service.levers.reset())

const create = async (changes: Record<string, unknown>) => {
  const { operation } = await service.ok('vmCreate', { body: vmBody(changes) })
  const ended = await service.ended(operation.operation_id)
  expect(ended.state).toBe('SUCCEEDED')
  return service.ok('vmGet', { params: { vm_id: ended.metadata.id } })
}
const read = async (vm_id: string) => (await service.call('vmGet', { params: { vm_id } })).body
const act = async (vm_id: string, body: unknown) => {
  const { operation } = await service.ok('vmUpdate', { params: { vm_id }, body })
  expect((await service.ended(operation.operation_id)).state).toBe('SUCCEEDED')
  return read(vm_id)
}
const pass = (seconds: number) => service.levers.clock.advance({ seconds })
const eventTypes = async (resource_id: string, type?: string) =>
  (await service.ok('eventList', { query: { resource_id, ...(type && { type }) } })).items
/** Moves the clock to this number of minutes before or after a time. */
const moveTo = (at: string, minutes: number) =>
  service.levers.clock.advance({ to: new Date(Date.parse(at) + minutes * 60_000).toISOString() })
const minutesLeft = async ({ expires_at }: { expires_at: string }) =>
  Math.round((Date.parse(expires_at) - Date.parse((await service.levers.clock.get()).now)) / 60_000)

test('a VM is stopped when its TTL expires, not before, and its owner is notified once, ten minutes ahead', async () => {
  const vm = await create({ ttl_seconds: 3600 })
  expect(vm.on_expiry).toBe('stop')
  expect(await minutesLeft(vm)).toBe(60)
  await moveTo(vm.expires_at, -11)
  expect(await eventTypes(vm.id, 'vm.expiring')).toEqual([])
  await moveTo(vm.expires_at, -10)
  await pass(1)
  expect(await eventTypes(vm.id, 'vm.expiring')).toMatchObject([
    { actor: 'system', data: { name: vm.name, expires_at: vm.expires_at, on_expiry: 'stop' } },
  ])
  await moveTo(vm.expires_at, -1)
  expect(await read(vm.id)).toMatchObject({ state: 'STATE_RUNNING' })
  await moveTo(vm.expires_at, 0)
  expect(await read(vm.id)).toMatchObject({ state: 'STATE_SHUTOFF', expires_at: '' })
  const stopping = await eventTypes(vm.id, 'vm.stopping')
  expect(stopping).toMatchObject([{ actor: 'system' }])
})

test('a VM that is started after it expired has no TTL', async () => {
  const vm = await create({ ttl_seconds: 300 })
  await pass(360)
  expect(await act(vm.id, { action: 'START' })).toMatchObject({ state: 'STATE_RUNNING', expires_at: '' })
  await pass(86_400)
  expect(await read(vm.id)).toMatchObject({ state: 'STATE_RUNNING' })
})

test('the TTL of a VM can be removed, and the VM then does not expire', async () => {
  const vm = await create({ ttl_seconds: 300 })
  const params = { vm_id: vm.id }
  const { status, body } = await service.call('vmUpdate', { params, body: { ttl_seconds: 299 } })
  expect([status, body]).toMatchObject([400, { message: expect.stringContaining('0 for no expiry') }])
  expect(await act(vm.id, { ttl_seconds: 0 })).toMatchObject({ expires_at: '' })
  await pass(86_400)
  expect(await read(vm.id)).toMatchObject({ state: 'STATE_RUNNING' })
  await act(vm.id, { action: 'STOP' })
  expect(await act(vm.id, { action: 'START' })).toMatchObject({ state: 'STATE_RUNNING', expires_at: '' })
})

test('a VM keeps its expiry time when it is stopped and started before that time', async () => {
  const vm = await create({ ttl_seconds: 3600 })
  await act(vm.id, { action: 'STOP' })
  const { expires_at } = await act(vm.id, { action: 'START' })
  expect(expires_at).toBe(vm.expires_at)
  await pass(3660)
  expect(await read(vm.id)).toMatchObject({ state: 'STATE_SHUTOFF' })
})

test('a VM that was shut off when its TTL expired has no TTL after it is started', async () => {
  const vm = await create({ ttl_seconds: 3600 })
  await act(vm.id, { action: 'STOP' })
  await pass(7200)
  expect(await act(vm.id, { action: 'START' })).toMatchObject({ state: 'STATE_RUNNING', expires_at: '' })
  await pass(3600)
  expect(await read(vm.id)).toMatchObject({ state: 'STATE_RUNNING' })
})

test('a VM with on_expiry delete is deleted when its TTL expires, even if it is shut off', async () => {
  const [running, stopped] = [
    await create({ ttl_seconds: 3600, on_expiry: 'delete' }),
    await create({ ttl_seconds: 3600, on_expiry: 'delete' }),
  ]
  await act(stopped.id, { action: 'STOP' })
  await moveTo(running.expires_at, -5)
  for (const { id } of [running, stopped]) expect(await eventTypes(id, 'vm.expiring')).toHaveLength(1)
  await moveTo(stopped.expires_at, 0)
  for (const { id: vm_id } of [running, stopped]) {
    expect((await service.call('vmGet', { params: { vm_id } })).status).toBe(404)
    expect(await eventTypes(vm_id, 'vm.deleting')).toMatchObject([{ actor: 'system' }])
  }
})

test('a PATCH extends the TTL of a VM, counted from the request, with a new warning', async () => {
  const vm = await create({ ttl_seconds: 600 })
  await pass(0)
  const extended = await act(vm.id, { ttl_seconds: 7200, on_expiry: 'delete' })
  expect(extended.on_expiry).toBe('delete')
  expect(await minutesLeft(extended)).toBe(120)
  await moveTo(vm.expires_at, 5)
  expect(await read(vm.id)).toMatchObject({ state: 'STATE_RUNNING' })
  await moveTo(extended.expires_at, -5)
  expect(await eventTypes(vm.id, 'vm.expiring')).toHaveLength(2)
  await moveTo(extended.expires_at, 0)
  expect((await service.call('vmGet', { params: { vm_id: vm.id } })).status).toBe(404)
})

test('a TTL that is too short or too long is rejected, and so is on_expiry without a TTL', async () => {
  const status = async (changes: Record<string, unknown>) =>
    (await service.call('vmCreate', { body: vmBody(changes) })).status
  expect(await status({ ttl_seconds: 299 })).toBe(400)
  expect(await status({ ttl_seconds: 2_592_001 })).toBe(400)
  expect(await status({ on_expiry: 'delete' })).toBe(400)
  expect(await status({ ttl_seconds: 3600, on_expiry: 'explode' })).toBe(400)
})

test('an expired VM is stopped once, even with concurrent reconcilers', async () => {
  const vm = await create({ ttl_seconds: 300 })
  const other = await service.another()
  // The reconcilers of both processes find that the VM has expired.
  await service.clock.advance('5 minutes')
  await Promise.all([service.server.reconciler.expiry(), other.reconciler.expiry()])
  await pass(0)
  expect(await eventTypes(vm.id, 'vm.stopping')).toHaveLength(1)
  await other.close()
})
