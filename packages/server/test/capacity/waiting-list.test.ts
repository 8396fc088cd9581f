import { addKey, ownerToken } from '@slipway/testing/people.ts'
import { freshName, vmBody } from '@slipway/testing/resources.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { groupBody, type SmallFleet, startSmallFleet } from '../support/fleets/small-fleet.ts'

let fleet: SmallFleet
beforeAll(async () => {
  fleet = await startSmallFleet([2])
})
afterAll(() => fleet?.service.close())
beforeEach(() => fleet.service.clock.freeze())
afterEach(() => fleet.clear())

test('a capacity request gets the GPUs that become free, and concurrent creations get none', async () => {
  const [first] = [await fleet.newVm(), await fleet.newVm()]
  const name = freshName('patient')
  const request = await fleet.wait({ vm: vmBody({ name }) })
  expect(request).toMatchObject({
    state: 'waiting',
    on_available: 'create',
    gpus_wanted: 1,
    gpus_held: 0,
    position: 1,
    blocked_by: '',
    location: '',
    resource_id: '',
    error: null,
  })
  // Creations are sent without a pause while the GPU becomes free.
  let isOver = false
  const refusals: unknown[] = []
  const flood = Promise.all(
    Array.from({ length: 8 }, async () => {
      while (!isOver) refusals.push(await fleet.service.call('vmCreate', { body: vmBody() }))
    }),
  )
  await fleet.free(first!)
  await fleet.settled()
  isOver = true
  await flood
  expect(refusals.length).toBeGreaterThan(0)
  for (const refusal of refusals)
    expect(refusal).toMatchObject({ status: 409, body: { code: 'out_of_stock' } })
  const granted = await fleet.request(request.id)
  expect(granted).toMatchObject({ state: 'fulfilled', location: 'us-east1-a', position: null })
  expect(await fleet.service.ended(granted.operation_id)).toMatchObject({
    state: 'SUCCEEDED',
    result: { id: granted.resource_id, name },
  })
})

test('a capacity request immediately gets GPUs that are in stock', async () => {
  const { id } = await fleet.wait()
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'fulfilled' })
})

test('a capacity request for several locations gets GPUs in one of them if all have stock', async () => {
  const wide = await startSmallFleet([1], (config) =>
    config.locations.push({ ...structuredClone(config.locations[0]!), name: 'eu-north1-a' }),
  )
  onTestFinished(() => wide.service.close())
  const locations = ['us-east1-a', 'eu-north1-a']
  for (const request of [await wide.wait({ locations }), await wide.wait({ locations })]) {
    await wide.settled()
    expect(await wide.request(request.id)).toMatchObject({ state: 'fulfilled' })
  }
  const ofBoth = (await wide.service.ok('vmList')).items.map(({ location }) => location)
  expect(ofBoth.sort()).toEqual(locations.toReversed())
  const third = await wide.wait({ locations })
  await wide.settled()
  expect(await wide.request(third.id)).toMatchObject({ state: 'waiting' })
})

test('organizations take turns: one request does not wait for fifty requests of another tenant', async () => {
  const vms = [await fleet.newVm(), await fleet.newVm()]
  const other = await fleet.addTenant('Few')
  const first = await fleet.wait()
  const many = await Promise.all(Array.from({ length: 49 }, () => fleet.wait()))
  const one = await fleet.wait({}, other)
  expect(one.position).toBe(2)
  const positions = await Promise.all(many.map(async ({ id }) => (await fleet.request(id)).position))
  expect(Math.max(...positions.map(Number))).toBe(51)
  for (const vm of vms) await fleet.free(vm)
  await fleet.settled()
  expect((await fleet.request(one.id, other)).state).toBe('fulfilled')
  expect((await fleet.request(first.id)).state).toBe('fulfilled')
})

test('held GPUs can be claimed until the hold ends, and then return to stock', async () => {
  const { service } = fleet
  const held = await fleet.wait({ on_available: 'hold' })
  await fleet.settled()
  expect(await fleet.request(held.id)).toMatchObject({ state: 'held', gpus_held: 1 })
  await service.clock.advance('14 minutes 59 seconds')
  const claimed = await fleet.claim(held.id)
  expect(claimed).toMatchObject({ status: 200 })
  expect(await service.ended(claimed.body.operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect(await fleet.request(held.id)).toMatchObject({ state: 'fulfilled' })

  const late = await fleet.wait({ on_available: 'hold' })
  await fleet.settled()
  await service.clock.advance('15 minutes 1 second')
  expect(await fleet.claim(late.id)).toMatchObject({ status: 409, body: { code: 'conflict' } })
  await fleet.settled()
  expect(await fleet.request(late.id)).toMatchObject({ state: 'expired', gpus_held: 0 })
  expect(await service.sql(`SELECT FROM gpus WHERE state = 'free'`)).toHaveLength(1)

  // For an hour, the organization gets no other hold, and other organizations overtake it.
  const next = await fleet.wait({ on_available: 'hold' })
  await fleet.settled()
  expect(await fleet.request(next.id)).toMatchObject({ state: 'waiting', blocked_by: '' })
  const created = await fleet.newVm()
  await fleet.free(created)
  await service.clock.advance('1 hour')
  await fleet.settled()
  expect(await fleet.request(next.id)).toMatchObject({ state: 'held' })
})

test('a capacity request without quota is passed over, and keeps its position until the quota is raised', async () => {
  const tenant = await fleet.addTenant('Small')
  const setQuota = (max: number) =>
    fleet.service.ok('adminOrganizationQuotaSet', {
      token: fleet.service.credentials.operator_key,
      params: { organization_id: tenant.organization_id },
      body: { items: [{ name: 'a100_gpus', max }] },
    })
  const vms = [await fleet.newVm(), await fleet.newVm()]
  await setQuota(0)
  const blocked = await fleet.wait({}, tenant)
  const behind = await fleet.wait()
  await fleet.settled()
  expect(await fleet.request(blocked.id, tenant)).toMatchObject({ blocked_by: 'quota', position: 1 })
  await fleet.free(vms[0]!)
  await fleet.settled()
  expect(await fleet.request(behind.id)).toMatchObject({ state: 'fulfilled' })
  await setQuota(1)
  await fleet.settled()
  expect(await fleet.request(blocked.id, tenant)).toMatchObject({ blocked_by: '', position: 1 })
  await fleet.free(vms[1]!)
  await fleet.settled()
  const granted = await fleet.request(blocked.id, tenant)
  expect(granted).toMatchObject({ state: 'fulfilled' })
})

test('a capacity request starts a stopped VM with its id, disks and addresses when GPUs are free', async () => {
  const { service } = fleet
  const stopped = await fleet.newVm()
  const before = await service.ok('vmGet', { params: { vm_id: stopped } })
  await fleet.succeeded(await fleet.act(stopped, { action: 'STOP' }))
  await fleet.settled()
  const vms = [await fleet.newVm(), await fleet.newVm()]
  const refused = await service.call('vmUpdate', { params: { vm_id: stopped }, body: { action: 'START' } })
  expect(refused).toMatchObject({ status: 409, body: { code: 'out_of_stock', queue: { length: 0 } } })
  const { id } = await fleet.wait({ start_vm_id: stopped })
  expect(await service.call('capacityRequestCreate', { body: { start_vm_id: stopped } })).toMatchObject({
    status: 409,
    body: { code: 'conflict' },
  })
  await fleet.free(vms[0]!)
  await fleet.settled()
  const granted = await fleet.request(id)
  expect(granted).toMatchObject({ state: 'fulfilled', resource_id: stopped })
  await service.ended(granted.operation_id)
  const after = await service.ok('vmGet', { params: { vm_id: stopped } })
  expect(after).toMatchObject({
    state: 'STATE_RUNNING',
    name: before.name,
    network_interfaces: before.network_interfaces,
  })
  expect(after.disks.map((disk) => disk.id)).toEqual(before.disks.map((disk) => disk.id))
})

test('the estimate for a capacity request is exact if all VMs have a time to live', async () => {
  const { service } = fleet
  const [soon] = [
    await fleet.newVm({ ttl_seconds: 3600, on_expiry: 'delete' }),
    await fleet.newVm({ ttl_seconds: 7200 }),
  ]
  const first = await fleet.wait({ vm: vmBody({ ttl_seconds: 600, on_expiry: 'delete' }) })
  const second = await fleet.wait()
  await fleet.settled()
  const { expires_at } = await service.ok('vmGet', { params: { vm_id: soon! } })
  expect((await fleet.request(first.id)).estimate).toMatchObject({
    earliest_at: expires_at,
    likely_at: expires_at,
    latest_at: expires_at,
    basis: 'expiries',
  })
  const promised = (await fleet.request(second.id)).estimate.latest_at
  expect(Date.parse(promised)).toBe(Date.parse(expires_at) + 600_000)
  await service.clock.advance('1 hour')
  await service.server.reconciler.expiry()
  await fleet.settled()
  expect(await fleet.request(first.id)).toMatchObject({ state: 'fulfilled' })
  await service.clock.advance('10 minutes')
  await service.server.reconciler.expiry()
  await fleet.settled()
  expect(await fleet.request(second.id)).toMatchObject({ state: 'fulfilled', updated_at: promised })
})

test('a refused creation tells when VMs with its number of GPUs would probably be created', async () => {
  const own = await startSmallFleet([2])
  onTestFinished(() => own.service.close())
  const { service } = own
  await service.clock.freeze()
  const ttl = (ttl_seconds: number) => ({ ttl_seconds, on_expiry: 'delete' })
  const vm_id = await own.newVm(ttl(3600))
  await own.newVm(ttl(7200))
  const { created_at } = await service.ok('vmGet', { params: { vm_id } })
  const after = (seconds: number) => new Date(Date.parse(created_at) + seconds * 1000).toISOString()
  // From now on, only the test makes estimates.
  await service.server.reconciler.stop()
  const cancel = (capacity_request_id: string) =>
    service.ok('capacityRequestDelete', { params: { capacity_request_id } })
  const queueFor = async (type: string) => {
    const refused = await service.call('vmCreate', { body: vmBody({ type }) })
    expect(refused).toMatchObject({ status: 409, body: { code: 'out_of_stock' } })
    return (refused.body as { queue?: unknown }).queue
  }
  const { id } = await own.wait({ vm: vmBody(ttl(600)) })
  await service.server.reconciler.capacity()
  // The waiting request gets the GPU that is free after an hour, and its VM uses the GPU for ten minutes.
  expect(await queueFor('a100.1x')).toEqual({ length: 1, likely_at: after(4200) })
  expect(await queueFor('a100.2x')).toEqual({ length: 1, likely_at: after(7200) })
  expect(await queueFor('a100.8x')).toBeUndefined()
  const group = await service.call('instanceGroupCreate', { body: groupBody(2) })
  expect(group).toMatchObject({ status: 409, body: { queue: { length: 1, likely_at: '' } } })
  await cancel(id)

  // The estimates of an empty queue are not updated.
  const estimateOfEmptyQueue = async () => {
    await cancel((await own.wait()).id)
    await service.server.reconciler.capacity()
    return queueFor('a100.1x')
  }
  expect(await estimateOfEmptyQueue()).toEqual({ length: 0, likely_at: after(3600) })
  await service.clock.advance('61 seconds')
  expect(await queueFor('a100.1x')).toEqual({ length: 0, likely_at: '' })
  await service.clock.advance('58 minutes 29 seconds')
  expect(await estimateOfEmptyQueue()).toEqual({ length: 0, likely_at: after(3600) })
  await service.ok('vmUpdate', { params: { vm_id }, body: { ttl_seconds: 3600 } })
  await service.clock.advance('40 seconds')
  expect(await queueFor('a100.1x')).toEqual({ length: 0, likely_at: '' })
})

test('a capacity request ends at its time limit, and the GPUs of a cancelled hold go to the next request', async () => {
  const { service } = fleet
  await fleet.newVm({ type: 'a100.2x' })
  const { id } = await fleet.wait({ until: new Date(Date.now() + 86_400_000 * 2).toISOString() })
  await service.clock.advance('2 days 1 minute')
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'expired' })
  const [vm] = (await service.ok('vmList')).items
  await fleet.free(vm!.id)
  const tenant = await fleet.addTenant('Next')
  const held = await fleet.wait({ on_available: 'hold', vm: vmBody({ type: 'a100.2x' }) })
  await fleet.settled()
  const next = await fleet.wait({}, tenant)
  await fleet.settled()
  expect((await fleet.request(next.id, tenant)).state).toBe('waiting')
  await service.ok('capacityRequestDelete', { params: { capacity_request_id: held.id } })
  await fleet.settled()
  const granted = await fleet.request(next.id, tenant)
  expect(granted.state).toBe('fulfilled')
})

test('a capacity request fails if its name is taken when it is granted', async () => {
  const vms = [await fleet.newVm(), await fleet.newVm()]
  const vm = vmBody()
  const { id } = await fleet.wait({ vm })
  await fleet.service.ok('vmUpdate', { params: { vm_id: vms[0]! }, body: { name: vm.name } })
  await fleet.free(vms[1]!)
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'failed', error: { code: 'already_exists' } })
})

test('a capacity request whose VM does not boot waits again, up to three times', async () => {
  const { service } = fleet
  const vms = [await fleet.newVm(), await fleet.newVm()]
  const { id } = await fleet.wait()
  const behind = await fleet.wait()
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject', times: 4 })
  await fleet.free(vms[0]!)
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'failed', error: { code: 'boot_failed' } })
  expect(await fleet.request(behind.id)).toMatchObject({ state: 'fulfilled' })
  const events = await service.sql<{ type: string }>(
    `SELECT type FROM events WHERE resource_id = $1 UNION ALL SELECT type FROM events_pending WHERE resource_id = $1`,
    [id],
  )
  const requeued = events.filter(({ type }) => type === 'capacity_request.requeued')
  expect(requeued).toHaveLength(3)
})

test('a host that drains loses its holds, and the capacity requests that had them wait again', async () => {
  const { service } = fleet
  const operator = { token: service.credentials.operator_key }
  const { id } = await fleet.wait({ on_available: 'hold', vm: vmBody({ type: 'a100.2x' }) })
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'held', gpus_held: 2 })
  const [host] = (await service.ok('adminHostList', operator)).items
  expect(host!.gpus.map(({ state, held_for }) => [state, held_for])).toEqual([
    ['held', id],
    ['held', id],
  ])
  const [capacity] = (await service.ok('adminCapacityList', operator)).items.filter(({ total }) => total > 0)
  expect(capacity).toMatchObject({ total: 2, free: 0, held: 2, claimed: 0 })
  const params = { host_id: host!.id }
  await service.ok('adminHostDrain', { ...operator, params })
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'waiting', gpus_held: 0, location: '' })
  await service.ok('adminHostUpdate', { ...operator, params, body: { schedulable: true } })
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'held', gpus_held: 2 })
})

test('the scripts of a capacity request are shown to callers who can write, and only a hash to those who can read', async () => {
  const { service } = fleet
  await fleet.newVm({ type: 'a100.2x' })
  const { id, request } = await fleet.wait({ vm: vmBody({ startup_script: '#!/bin/sh\necho secret' }) })
  expect(JSON.stringify(request)).toContain('echo secret')
  const owner = await ownerToken(service)
  const { secret: token } = await addKey(service, owner, service.credentials.project_id, 'read')
  const params = { capacity_request_id: id }
  const seen = [
    await service.ok('capacityRequestGet', { params, token }),
    await service.ok('capacityRequestList', { token }),
    await service.sql('SELECT data FROM events_pending'),
    await service.sql('SELECT data FROM events'),
  ]
  expect(JSON.stringify(seen)).not.toContain('echo secret')
  expect(seen[0]).toMatchObject({ request: { vm: { startup_script: expect.stringMatching(/^sha256:/) } } })
})

test('a capacity request that no host could ever serve, or that is empty or invalid, is refused', async () => {
  const refused = (body: unknown) => fleet.service.call('capacityRequestCreate', { body })
  const invalid = { status: 400, body: { code: 'invalid_argument' } }
  expect(await refused({})).toMatchObject(invalid)
  expect(await refused({ vm: vmBody({ type: 'a100.8x' }) })).toMatchObject(invalid)
  expect(await refused({ vm: vmBody({ image: 'none:latest' }) })).toMatchObject(invalid)
  expect(await refused({ vm: vmBody(), hold_seconds: 300 })).toMatchObject(invalid)
  expect(await refused({ vm: vmBody(), until: '2020-01-01T00:00:00Z' })).toMatchObject(invalid)
  expect(await refused({ instance_group: {} })).toMatchObject(invalid)
})
