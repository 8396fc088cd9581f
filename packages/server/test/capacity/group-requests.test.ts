import { addKey, ownerToken } from '@slipway/testing/people.ts'
import { freshName, vmBody } from '@slipway/testing/resources.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { groupBody, type SmallFleet, startSmallFleet } from '../support/fleets/small-fleet.ts'

/** Two hosts with two GPUs each. */
let fleet: SmallFleet
beforeAll(async () => {
  fleet = await startSmallFleet([2, 2])
})
afterAll(() => fleet?.service.close())
beforeEach(() => fleet.service.clock.freeze())
afterEach(() => fleet.clear())

const fill = async (count: number, changes = {}) => {
  const vms: string[] = []
  for (let n = 0; n < count; n++) vms.push(await fleet.newVm(changes))
  return vms
}
const freeGpus = async () => (await fleet.service.sql(`SELECT FROM gpus WHERE state = 'free'`)).length

test('a group gets the GPUs of all members at the same time, on several hosts, and smaller requests overtake it', async () => {
  const { service } = fleet
  const vms = await fill(4)
  const group = groupBody(3)
  const waiting = await fleet.wait({ instance_group: group })
  expect(waiting).toMatchObject({ state: 'waiting', gpus_wanted: 3, position: 1 })
  const small = await fleet.wait()
  await fleet.free(vms[0]!)
  const passed = await fleet.request(small.id)
  expect(passed).toMatchObject({ state: 'fulfilled' })
  await fleet.free(vms[1]!)
  await fleet.free(vms[2]!)
  expect(await fleet.request(waiting.id)).toMatchObject({ state: 'waiting', gpus_held: 0 })
  expect(await freeGpus()).toBe(2)
  await fleet.free(passed.resource_id)
  const granted = await fleet.request(waiting.id)
  expect(granted).toMatchObject({ state: 'fulfilled', location: 'us-east1-a', position: null })
  expect(await service.ended(granted.operation_id)).toMatchObject({
    state: 'SUCCEEDED',
    result: { id: granted.resource_id, name: group.name, running_instance_count: 3 },
  })
  expect(await freeGpus()).toBe(0)
})

test('concurrent creations get none of the GPUs that complete a waiting group', async () => {
  const vms = await fill(4, { type: 'a100.1x' })
  const waiting = await fleet.wait({
    instance_group: groupBody(2, { placement_policy: 'spread' }, { type: 'a100.2x' }),
  })
  for (const vm of vms.slice(0, 3)) await fleet.free(vm)
  // One host is empty. The other one has a free GPU, which single VMs can still get.
  expect(await fleet.request(waiting.id)).toMatchObject({ state: 'waiting' })
  let isOver = false
  const answers: { status: number }[] = []
  const flood = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!isOver)
        answers.push(await fleet.service.call('vmCreate', { body: vmBody({ type: 'a100.4x' }) }))
    }),
  )
  await fleet.free(vms[3]!)
  isOver = true
  await flood
  expect(answers.length).toBeGreaterThan(0)
  expect(answers.every(({ status }) => status === 409)).toBe(true)
  expect(await fleet.request(waiting.id)).toMatchObject({ state: 'fulfilled' })
})

test('a group is held on all its hosts until it is claimed, and its GPUs are released if it is not', async () => {
  const { service } = fleet
  const held = await fleet.wait({ on_available: 'hold', instance_group: groupBody(4) })
  await fleet.settled()
  expect(await fleet.request(held.id)).toMatchObject({ state: 'held', gpus_held: 4 })
  expect(await service.call('vmCreate', { body: vmBody() })).toMatchObject({ status: 409 })
  await service.clock.advance('14 minutes 59 seconds')
  const claimed = await fleet.claim(held.id)
  expect(claimed).toMatchObject({ status: 200 })
  expect(await service.ended(claimed.body.operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  const { resource_id, state } = await fleet.request(held.id)
  expect(state).toBe('fulfilled')
  await fleet.removeGroup(resource_id)

  const late = await fleet.wait({ on_available: 'hold', instance_group: groupBody(4) })
  await fleet.settled()
  await service.clock.advance('15 minutes 1 second')
  expect(await fleet.claim(late.id)).toMatchObject({ status: 409, body: { code: 'conflict' } })
  await fleet.settled()
  expect(await fleet.request(late.id)).toMatchObject({ state: 'expired', gpus_held: 0 })
  expect(await freeGpus()).toBe(4)
  await service.clock.advance('1 hour')
})

test('a held group that loses one of its hosts waits again, and its GPUs on the other hosts return to stock', async () => {
  const { service } = fleet
  const operator = { token: service.credentials.operator_key }
  const { id } = await fleet.wait({ on_available: 'hold', instance_group: groupBody(3) })
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'held', gpus_held: 3 })
  const [host] = (await service.ok('adminHostList', operator)).items
  const params = { host_id: host!.id }
  await service.ok('adminHostDrain', { ...operator, params })
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'waiting', gpus_held: 0, location: '' })
  await fleet.newVm({ type: 'a100.2x' })
  await service.ok('adminHostUpdate', { ...operator, params, body: { schedulable: true } })
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'waiting' })
})

test('a group that does not boot waits again at its old position, and is granted again', async () => {
  const { service } = fleet
  const vms = await fill(4)
  const { id } = await fleet.wait({ instance_group: groupBody(2) })
  const behind = await fleet.wait({ instance_group: groupBody(2) })
  // One member fails, and no other host has room for it. The other member is then removed, which frees its GPU.
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject' })
  await fleet.free(vms[0]!)
  await fleet.free(vms[1]!)
  expect(await fleet.request(id)).toMatchObject({ state: 'fulfilled' })
  expect(await fleet.request(behind.id)).toMatchObject({ state: 'waiting' })
  const requeued = await service.sql(
    `SELECT FROM events_written WHERE resource_id = $1 AND type = 'capacity_request.requeued'`,
    [id],
  )
  expect(requeued).toHaveLength(1)
})

test('a group needs quota for all its members, and for one more group', async () => {
  const { service } = fleet
  const setQuota = (name: string, max: number) =>
    service.ok('adminOrganizationQuotaSet', {
      token: service.credentials.operator_key,
      params: { organization_id: service.credentials.organization_id },
      body: { items: [{ name, max }] },
    })
  await setQuota('a100_gpus', 2)
  const { id } = await fleet.wait({ instance_group: groupBody(3) })
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'waiting', blocked_by: 'quota' })
  await setQuota('instance_groups', 0)
  await setQuota('a100_gpus', 10_000)
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'waiting', blocked_by: 'quota' })
  await setQuota('instance_groups', 100)
  await fleet.settled()
  expect(await fleet.request(id)).toMatchObject({ state: 'fulfilled' })
})

test('the estimate for a group is the time when its last GPU becomes free', async () => {
  const ends: string[] = []
  for (const hours of [1, 2, 3, 4]) {
    const vm_id = await fleet.newVm({ ttl_seconds: hours * 3600, on_expiry: 'delete' })
    ends.push((await fleet.service.ok('vmGet', { params: { vm_id } })).expires_at)
  }
  const { id } = await fleet.wait({ instance_group: groupBody(3) })
  await fleet.settled()
  expect((await fleet.request(id)).estimate).toMatchObject({ latest_at: ends[2], basis: 'expiries' })
})

test('a capacity request for a group is refused for the same reasons as its creation, except missing stock', async () => {
  const { service } = fleet
  const refused = (instance_group: unknown, more = {}) =>
    service.call('capacityRequestCreate', { body: { instance_group, ...more } })
  const invalid = (field: string) => ({
    status: 400,
    body: { code: 'invalid_argument', details: [{ field: `/instance_group/${field}` }] },
  })
  expect(await refused(groupBody(5))).toMatchObject(invalid('desired_count'))
  expect(await refused(groupBody(3, { placement_policy: 'spread' }))).toMatchObject(invalid('desired_count'))
  expect(await refused(groupBody(2, {}, { image: 'none:latest' }))).toMatchObject(invalid('vm/image'))
  expect(await refused(groupBody(2, { vm: {} }))).toMatchObject(invalid('vm/type'))
  expect(await refused(groupBody(2), { vm: vmBody() })).toMatchObject({ status: 400 })
  const name = freshName('taken')
  await fleet.newVm({ name: `${name}-2` })
  expect(await refused(groupBody(2, { name }))).toMatchObject({
    status: 409,
    body: { code: 'already_exists' },
  })
})

test('if a template is deleted, a waiting request for a group that uses it fails, but a request for a VM does not', async () => {
  const { service } = fleet
  const vms = await fill(4)
  const { name: _, ...members } = vmBody()
  const template = await service.ok('instanceTemplateCreate', {
    body: { name: freshName('template'), ...members },
  })
  const own = { name: freshName('group'), desired_count: 2, template_id: template.id }
  const group = await fleet.wait({ instance_group: own })
  const vm = await fleet.wait({ vm: { name: freshName('vm'), instance_template_id: template.id } })
  await service.ok('instanceTemplateDelete', { params: { instance_template_id: template.id } })
  for (const each of vms) await fleet.free(each)
  expect(await fleet.request(group.id)).toMatchObject({
    state: 'failed',
    error: { code: 'invalid_argument' },
  })
  expect(await fleet.request(vm.id)).toMatchObject({ state: 'fulfilled' })
})

test('the scripts of members in a capacity request are hidden from callers who can only read', async () => {
  const { service } = fleet
  await fill(2, { type: 'a100.2x' })
  const startup_script = '#!/bin/sh\necho secret'
  const { id, request } = await fleet.wait({ instance_group: groupBody(2, {}, { startup_script }) })
  expect(JSON.stringify(request)).toContain('echo secret')
  const owner = await ownerToken(service)
  const { secret: token } = await addKey(service, owner, service.credentials.project_id, 'read')
  const seen = [
    await service.ok('capacityRequestGet', { params: { capacity_request_id: id }, token }),
    await service.sql('SELECT data FROM events_pending'),
    await service.sql('SELECT data FROM events'),
  ]
  expect(JSON.stringify(seen)).not.toContain('echo secret')
  expect(seen[0]).toMatchObject({
    request: { instance_group: { vm: { startup_script: expect.stringMatching(/^sha256:/) } } },
  })
})
