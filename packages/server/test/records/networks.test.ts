import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { freshName, resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, useService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
const location = 'us-east1-a'

beforeAll(async () => {
  service = await startService()
  resources = resourcesOf(service)
})
afterAll(() => service.close())
afterEach(async () => {
  await resources.clear()
  for (const { id } of (await service.ok('addressList')).items)
    await service.ok('addressDelete', { params: { address_id: id } })
  await settle(service)
  await checkInvariants(service)
})

const reserve = (changes: Record<string, unknown> = { location }) =>
  service.call('addressCreate', { body: { name: freshName('address'), ...changes } })
const newAddress = async (changes?: Record<string, unknown>) => {
  const { status, body } = await reserve(changes)
  expect(status).toBe(200)
  return body
}
const read = (address_id: string) => service.ok('addressGet', { params: { address_id } })
const publicOf = async (vm_id: string) => {
  const vm = await service.ok('vmGet', { params: { vm_id } })
  return vm.network_interfaces[0]!.ips[0]!.public_ipv4
}
const destination = async (vm_id: string) =>
  (await service.ok('vmGet', { params: { vm_id } })).ssh_destination
const wrong = (field: string) => ({ status: 400, body: { details: [{ field }] } })
const deleteVm = async (vm_id: string) => resources.succeeded(await resources.removeVm(vm_id))

test('a reserved address outlives its VM, and a new VM can have it', async () => {
  const { id, address } = await newAddress()
  const first = await resources.newVm({ public_address_id: id })
  expect(await publicOf(first)).toEqual({ address, id, type: 'static' })
  expect(await destination(first)).toBe(`ubuntu@${address}`)
  expect(await read(id)).toMatchObject({ vm_id: first, type: 'static' })
  const taken = await service.call('vmCreate', {
    body: { ...vmBody(), public_address_id: id },
  })
  expect(taken).toMatchObject({ status: 409, body: { code: 'conflict' } })
  await deleteVm(first)
  expect(await read(id)).toMatchObject({ vm_id: '', address })
  const second = await resources.newVm({ public_address_id: id, location: 'any' })
  expect(await publicOf(second)).toEqual({ address, id, type: 'static' })
})

test('the dynamic address of a VM can be reserved, and the VM keeps it', async () => {
  const vm = await resources.newVm()
  const before = await publicOf(vm)
  const { id, address } = await newAddress({ vm_id: vm })
  expect({ id, address }).toEqual({ id: before.id, address: before.address })
  expect(await publicOf(vm)).toEqual({ ...before, type: 'static' })
  expect(await reserve({ vm_id: vm })).toMatchObject({ status: 409, body: { code: 'conflict' } })
  const hidden = await resources.newVm({ public_ip: 'none' })
  expect((await reserve({ vm_id: hidden })).status).toBe(409)
  await deleteVm(vm)
  expect(await read(id)).toMatchObject({ vm_id: '', address })
})

test('an assigned address replaces the dynamic one, and unassigning gives the VM another one', async () => {
  const vm = await resources.newVm()
  const { address: dynamic } = await publicOf(vm)
  const { id, address } = await newAddress()
  await resources.succeeded(await resources.assign(id, vm))
  expect(await publicOf(vm)).toEqual({ address, id, type: 'static' })
  expect(await destination(vm)).toBe(`ubuntu@${address}`)
  const again = await service.call('addressAssign', { params: { address_id: id }, body: { vm_id: vm } })
  expect(again).toMatchObject({ status: 409, body: { code: 'conflict' } })
  const refused = await service.call('addressDelete', { params: { address_id: id } })
  expect(refused).toMatchObject({ status: 409, body: { code: 'conflict' } })
  const other = await resources.newVm()
  const ofOther = await service.call('addressUnassign', {
    params: { address_id: id },
    query: { vm_id: other },
  })
  expect(ofOther).toMatchObject({ status: 409, body: { message: expect.stringContaining('does not have') } })
  const { operation } = await service.ok('addressUnassign', {
    params: { address_id: id },
    query: { vm_id: vm.toUpperCase() },
  })
  expect(operation.metadata).toMatchObject({ operation_name: 'UPDATE', type: 'vm', id: vm })
  expect(await service.ended(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  const after = await publicOf(vm)
  expect(after.type).toBe('dynamic')
  expect([address, dynamic]).not.toContain(after.address)
  expect(await read(id)).toMatchObject({ vm_id: '' })
  expect((await service.call('addressUnassign', { params: { address_id: id } })).status).toBe(409)
})

test('events say which VM got or lost a reserved address, for every possible reason', async () => {
  const { id } = await newAddress()
  const first = await resources.succeeded(
    await service.ok('vmCreate', { body: { ...vmBody(), public_address_id: id } }),
  )
  const second = await resources.newVm()
  await resources.succeeded(await resources.assign(id, second))
  await resources.succeeded(await resources.unassign(id))
  await resources.succeeded(await resources.assign(id, second))
  await deleteVm(second)
  const other = await newAddress()
  await resources.succeeded(await resources.assign(id, first))
  await resources.succeeded(await resources.assign(other.id, first))
  const { items } = await service.ok('eventList', { query: { resource_id: id } })
  expect(items.map(({ type, data }) => [type, data.vm_id]).reverse()).toEqual([
    ['address.created', undefined],
    ['address.assigned', first],
    ['address.unassigned', first],
    ['address.assigned', second],
    ['address.unassigned', second],
    ['address.assigned', second],
    ['address.unassigned', second],
    ['address.assigned', first],
    ['address.unassigned', first],
  ])
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject' })
  const failed = await service.ok('vmCreate', { body: { ...vmBody(), public_address_id: id } })
  expect(await service.ended(failed.operation.operation_id)).toMatchObject({ state: 'FAILED' })
  const last = await service.ok('eventList', { query: { resource_id: id, limit: 1 } })
  expect(last.items).toMatchObject([
    { type: 'address.unassigned', data: { vm_id: failed.operation.metadata.id } },
  ])
})

test('a VM without a public address and a VM that is off can get a reserved one', async () => {
  const vm = await resources.newVm({ public_ip: 'none' })
  await resources.succeeded(await resources.act(vm, { action: 'STOP' }))
  const { id, address } = await newAddress()
  await resources.succeeded(await resources.assign(id, vm))
  expect(await destination(vm)).toBe('')
  await resources.succeeded(await resources.act(vm, { action: 'START' }))
  expect(await destination(vm)).toBe(`ubuntu@${address}`)
})

test('an address moves from one VM to another, and the first gets a dynamic one', async () => {
  const [from, to] = [await resources.newVm(), await resources.newVm()]
  const { id, address } = await newAddress({ vm_id: from })
  await resources.succeeded(await resources.assign(id, to))
  expect(await publicOf(to)).toEqual({ address, id, type: 'static' })
  expect(await publicOf(from)).toMatchObject({ type: 'dynamic' })
  expect((await publicOf(from)).address).not.toBe(address)
})

test('exactly one of several concurrent assignments of an address succeeds', async () => {
  const vms = [await resources.newVm(), await resources.newVm(), await resources.newVm()]
  const { id } = await newAddress()
  // The first assignment must not end before the others have been tried, because the address could then move again.
  await service.simulator().addFault({ method: 'setPublicAddress', kind: 'fail', times: 1_000 })
  const tried = await Promise.all(
    vms.map((vm_id) => service.call('addressAssign', { params: { address_id: id }, body: { vm_id } })),
  )
  const won = tried.filter(({ status }) => status === 200)
  expect(won).toHaveLength(1)
  const { operation_id } = won[0]!.body.operation
  for (const { status, body } of tried)
    if (status !== 200) expect(body).toMatchObject({ code: 'conflict', details: { operation_id } })
  const isBeingAssigned = {
    status: 409,
    body: { message: expect.stringMatching(/is being assigned/), details: { operation_id } },
  }
  const withAddress = { body: vmBody({ public_address_id: id }) }
  expect(await service.call('vmCreate', withAddress)).toMatchObject(isBeingAssigned)
  expect(await service.call('addressDelete', { params: { address_id: id } })).toMatchObject(isBeingAssigned)
  await service.simulator().clearFaults()
  const holder = await resources.succeeded(won[0]!.body)
  expect(await read(id)).toMatchObject({ vm_id: holder })
})

test('a reserved address that cannot be taken from its VM stays there', async () => {
  const [from, to] = [await resources.newVm(), await resources.newVm()]
  const { id, address } = await newAddress({ vm_id: from })
  const before = await publicOf(to)
  await service.simulator().addFault({ method: 'setPublicAddress', kind: 'reject', resourceId: from })
  const { operation } = await resources.assign(id, to)
  expect(await service.ended(operation.operation_id)).toMatchObject({
    state: 'FAILED',
    result: { code: 'conflict' },
  })
  expect(await publicOf(from)).toEqual({ address, id, type: 'static' })
  expect(await publicOf(to)).toEqual(before)
})

test('an address is not lost if the VM that it moves from or to is deleted during the move', async () => {
  const [from, to] = [await resources.newVm(), await resources.newVm()]
  const { id } = await newAddress({ vm_id: from })
  await service.simulator().addFault({ method: 'setPublicAddress', kind: 'fail', times: 2, resourceId: from })
  const { operation } = await resources.assign(id, to)
  await deleteVm(from)
  expect(await service.ended(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect(await read(id)).toMatchObject({ vm_id: to })
  const next = await resources.newVm()
  await service.simulator().addFault({ method: 'setPublicAddress', kind: 'fail', times: 2, resourceId: next })
  const second = await resources.assign(id, next)
  await deleteVm(next)
  expect(await service.ended(second.operation.operation_id)).toMatchObject({ state: 'FAILED' })
  await service.simulator().clearFaults()
})

test('while the host of its VM is lost, an address cannot move, even if the VM is deleted', async () => {
  const [from, to] = [await resources.newVm(), await resources.newVm()]
  const { id } = await newAddress({ vm_id: from })
  const [row] = await service.sql<{ id: string; name: string }>(
    'SELECT h.id, h.name FROM hosts h JOIN vms v ON v.host_id = h.id WHERE v.id = $1',
    [from],
  )
  // A report would mark the host as up again.
  await service.simulator().setHostLost(row!.name, true)
  await service.sql(`UPDATE hosts SET state = 'down' WHERE id = $1`, [row!.id])
  const assign = () => service.call('addressAssign', { params: { address_id: id }, body: { vm_id: to } })
  expect(await assign()).toMatchObject({ status: 409, body: { code: 'conflict' } })
  await deleteVm(from)
  expect(await assign()).toMatchObject({ status: 409, body: { code: 'conflict' } })
  expect((await service.call('addressDelete', { params: { address_id: id } })).status).toBe(409)
  await service.simulator().setHostLost(row!.name, false)
  await settle(service)
  expect(await read(id)).toMatchObject({ vm_id: '' })
})

test('a dynamic address is never a reserved one, even if only one address is left', async () => {
  const small = await useService((config) => {
    for (const each of config.locations) if (each.name === location) each.publicIpv4 = '198.18.200.0/30'
  })
  const { newVm } = resourcesOf(small)
  const addressOf = async (vm_id: string) =>
    (await small.ok('vmGet', { params: { vm_id } })).network_interfaces[0]!.ips[0]!.public_ipv4.address
  const body = { name: 'gateway', location }
  const { id, address } = await small.ok('addressCreate', { body })
  expect(await addressOf(await newVm())).not.toBe(address)
  const refused = { status: 409, body: { code: 'out_of_stock' } }
  expect(await small.call('addressCreate', { body: { ...body, name: 'other' } })).toMatchObject(refused)
  expect(await small.call('vmCreate', { body: vmBody() })).toMatchObject(refused)
  await small.ok('addressDelete', { params: { address_id: id } })
  await settle(small)
  expect(await addressOf(await newVm())).toBe(address)
})

test('invalid requests for reserved addresses are rejected', async () => {
  expect((await reserve({})).status).toBe(400)
  const vm = await resources.newVm()
  expect((await reserve({ location, vm_id: vm })).status).toBe(400)
  expect((await reserve({ vm_id: crypto.randomUUID() })).status).toBe(400)
  const elsewhere = await newAddress({ location: 'eu-north1-a' })
  const params = { address_id: elsewhere.id }
  expect((await service.call('addressAssign', { params, body: { vm_id: vm } })).status).toBe(400)
  const body = { ...vmBody(), public_address_id: elsewhere.id }
  expect(await service.call('vmCreate', { body })).toMatchObject(wrong('/public_address_id'))
  const both = { ...body, location: 'eu-north1-a', public_ip: 'none' }
  expect(await service.call('vmCreate', { body: both })).toMatchObject(wrong('/public_ip'))
  const taken = await reserve({ location, name: elsewhere.name })
  expect(taken).toMatchObject({ status: 409, body: { code: 'already_exists' } })
  const renamed = await service.ok('addressUpdate', { params, body: { name: 'other', labels: { a: 'b' } } })
  expect(renamed).toEqual({ ...elsewhere, name: 'other', labels: { a: 'b' } })
  expect((await service.ok('addressList', { query: { label_selector: 'a=b' } })).items).toEqual([renamed])
})

test('a reserved address is metered while no running VM has it', async () => {
  const { id } = await newAddress()
  const openMeters = async () => {
    const open = 'SELECT product_name FROM usage_intervals WHERE resource_id = $1 AND upper_inf(period)'
    const rows = await service.sql<{ product_name: string }>(open, [id])
    return rows.map(({ product_name }) => product_name)
  }
  expect(await openMeters()).toEqual(['reserved-address'])
  const vm = await resources.newVm({ public_address_id: id })
  expect(await openMeters()).toEqual([])
  await resources.succeeded(await resources.act(vm, { action: 'STOP' }))
  expect(await openMeters()).toEqual(['reserved-address'])
  await resources.succeeded(await resources.act(vm, { action: 'START' }))
  expect(await openMeters()).toEqual([])
  await deleteVm(vm)
  expect(await openMeters()).toEqual(['reserved-address'])
  await service.ok('adminPriceSet', {
    token: service.credentials.operator_key,
    body: { items: [{ product_name: 'reserved-address', unit: 'address_hour', usd: 0.005 }] },
  })
  await service.clock.advance('2 hours')
  const { usd } = await service.ok('projectResourceCost', { params: { resource_id: id } })
  expect(usd).toBeGreaterThanOrEqual(0.01)
  await service.ok('addressDelete', { params: { address_id: id } })
  expect(await openMeters()).toEqual([])
})

test('a subnet can be renamed, and its name is unique in the project', async () => {
  const { items } = await service.ok('subnetList')
  const [subnet, other] = items
  const params = { subnet_id: subnet!.id }
  const rename = (name: string) => service.call('subnetUpdate', { params, body: { name } })
  const name = freshName('subnet')
  expect(await rename(name)).toMatchObject({ status: 200, body: { ...subnet, name } })
  expect(await service.ok('subnetGet', { params })).toEqual({ ...subnet, name })
  expect(await rename(other!.name)).toMatchObject({ status: 409, body: { code: 'already_exists' } })
  expect((await rename('Not A Name')).status).toBe(400)
  const foreign = { subnet_id: crypto.randomUUID() }
  expect((await service.call('subnetUpdate', { params: foreign, body: { name } })).status).toBe(404)
  const events = await service.sql(
    `SELECT data FROM events_written WHERE type = 'subnet.updated' AND resource_id = $1`,
    [subnet!.id],
  )
  expect(events).toEqual([{ data: { name } }])
})
