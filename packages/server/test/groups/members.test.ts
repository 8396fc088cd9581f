import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Rendezvous } from '../../src/domain/guest/rendezvous.ts'
import { type GroupFleet, startGroupFleet } from '../support/fleets/group-fleet.ts'
import { groupBody } from '../support/fleets/small-fleet.ts'

let fleet: GroupFleet
beforeAll(async () => {
  fleet = await startGroupFleet()
})
afterAll(() => fleet?.service.close())
afterEach(() => fleet.clear())

/** Returns the names of the members that respond and wait for the others. */
const waiting = async (id: string) =>
  (
    await fleet.service.sql<{ name: string }>(
      'SELECT name FROM vms WHERE group_id = $1 AND booted_at IS NOT NULL ORDER BY name',
      [id],
    )
  ).map(({ name }) => name)

const costs = async () => (await fleet.service.ok('vmList')).items.map(({ cost_usd }) => cost_usd)

test('while one member is slow, no member runs or costs anything, and then all start running at the same time', async () => {
  const { id, operation_id, names } = await fleet.slowGroup(3)
  await fleet.respond(names.slice(0, 2))
  await eventually(async () => {
    await fleet.hasten()
    return (await waiting(id)).length === 2
  })
  await fleet.service.clock.advance('299 seconds')
  await fleet.hasten()
  expect(await fleet.get(id)).toMatchObject({ state: 'UPDATING', running_instance_count: 0 })
  expect(await costs()).toEqual([0, 0, 0])
  await fleet.respond(names)
  expect(await fleet.endedNow(operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  const { items } = await fleet.service.ok('vmList')
  expect(new Set(items.map(({ started_at }) => started_at)).size).toBe(1)
  expect(items.map(({ ssh_destination }) => ssh_destination !== '')).toEqual([true, true, true])
  const { items: events } = await fleet.service.ok('eventList', { query: { resource_id: id } })
  expect(events.map(({ type }) => type).filter((type) => type.startsWith('instance_group'))).toEqual([
    'instance_group.healthy',
    'instance_group.creating',
  ])
})

test('members that wait for the others for more than 300 seconds are billed from then on', async () => {
  const { id, operation_id, names } = await fleet.slowGroup(3)
  await fleet.respond(names.slice(0, 2))
  await eventually(async () => {
    await fleet.hasten()
    return (await waiting(id)).length === 2
  })
  await fleet.service.clock.advance('301 seconds')
  await eventually(async () => {
    await fleet.hasten()
    const rows = await fleet.service.sql(
      'SELECT FROM usage_intervals i JOIN vms v ON v.id = i.resource_id WHERE upper_inf(period)',
    )
    return rows.length === 2
  })
  await fleet.service.clock.advance('100 seconds')
  expect((await costs()).filter((cost) => cost > 0)).toHaveLength(2)
  await fleet.respond(names)
  expect(await fleet.endedNow(operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  await settle(fleet.service)
  await checkInvariants(fleet.service)
})

test('a member that does not boot is placed again once, on another host', async () => {
  const failures = async () =>
    (await fleet.service.sql(`SELECT FROM operations WHERE kind = 'vm-create' AND state = 'FAILED'`)).length
  // GPUs of earlier tests may still be in quarantine.
  await settle(fleet.service)
  const before = await failures()
  await fleet.service.simulator().addFault({ method: 'ensureVm', kind: 'reject', times: 1 })
  const group = await fleet.newGroup(3)
  expect(group).toMatchObject({ state: 'HEALTHY', running_instance_count: 3 })
  expect(await failures()).toBe(before + 1)
})

test('if a member fails to boot twice, the whole group is removed with its error', async () => {
  const before = await fleet.store()
  await fleet.service.simulator().addFault({ method: 'ensureVm', kind: 'reject', times: 1_000 })
  const { id, operation_id } = await fleet.beginGroup(groupBody(3))
  expect(await fleet.service.advanceUntilEnded(operation_id)).toMatchObject({
    state: 'FAILED',
    result: { code: 'engine_error' },
  })
  expect((await fleet.service.call('instanceGroupGet', { params: { instance_group_id: id } })).status).toBe(
    404,
  )
  await settle(fleet.service)
  const after = await fleet.store()
  expect({ ...after, operations: 0, events: 0 }).toEqual({ ...before, operations: 0, events: 0 })
  expect(await fleet.service.sql('SELECT FROM usage_intervals WHERE resource_id = $1', [id])).toEqual([])
})

test('a failed resize leaves the group as it was', async () => {
  const group = await fleet.newGroup(2)
  await fleet.service.simulator().addFault({ method: 'ensureVm', kind: 'reject', times: 1_000 })
  const { operation } = await fleet.service.ok('instanceGroupUpdate', {
    params: { instance_group_id: group.id },
    body: { desired_count: 4 },
  })
  expect(await fleet.service.advanceUntilEnded(operation.operation_id)).toMatchObject({ state: 'FAILED' })
  expect(await fleet.get(group.id)).toMatchObject({
    ...{ state: 'HEALTHY', desired_count: 2, running_instance_count: 2, instances: group.instances },
  })
})

test('a group is unhealthy while a member has crashed', async () => {
  const group = await fleet.newGroup(2)
  await fleet.service.simulator().crashVm(group.instances[0]!)
  await eventually(async () => (await fleet.get(group.id)).state === 'UNHEALTHY')
  const { operation } = await fleet.service.ok('vmUpdate', {
    params: { vm_id: group.instances[0]! },
    body: { action: 'RESET' },
  })
  await fleet.service.ended(operation.operation_id)
  expect(await fleet.get(group.id)).toMatchObject({ state: 'HEALTHY', running_instance_count: 2 })
})

test('the deletion of a group while its members boot ends the creation, and can also delete the new disks', async () => {
  await fleet.service.clock.freeze()
  fleet.service.simulator().setBootMs([3_600_000, 3_600_000])
  const { id, operation_id } = await fleet.beginGroup(groupBody(2, {}, { new_disks: [{ size: '10GiB' }] }))
  await fleet.removeGroup(id)
  expect(await fleet.service.ended(operation_id)).toMatchObject({
    state: 'FAILED',
    result: { code: 'cancelled' },
  })
  expect((await fleet.service.ok('diskList')).items).toEqual([])
  fleet.service.simulator().setBootMs([0, 0])
  await fleet.service.clock.thaw()
  const group = await fleet.newGroup(2, {}, { new_disks: [{ size: '10GiB' }] })
  expect((await fleet.service.ok('diskList')).items).toHaveLength(2)
  await fleet.removeGroup(group.id, { delete_disks: true })
  expect((await fleet.service.ok('diskList')).items).toEqual([])
})

test('a member that is lost with its host is replaced under its name, with another address', async () => {
  const group = await fleet.newGroup(3, { on_member_loss: 'replace', placement_policy: 'spread' })
  const [host] = await fleet.service.sql<{ name: string }>(
    'SELECT h.name FROM hosts h JOIN vms v ON v.host_id = h.id WHERE v.id = $1',
    [group.instances[1]!],
  )
  await fleet.service.simulator().setHostLost(host!.name, true)
  const pass = async (interval: string) => {
    await fleet.service.clock.advance(interval)
    await fleet.service.server.reconciler.reports()
    await fleet.service.server.reconciler.groups()
  }
  await eventually(async () => {
    await pass('30 seconds')
    return (await fleet.get(group.id)).state === 'UNHEALTHY'
  })
  await pass('300 seconds')
  expect((await fleet.get(group.id)).instances).toEqual(group.instances)
  await pass('300 seconds')
  await eventually(async () => {
    await fleet.hasten()
    const { state, generation } = await fleet.get(group.id)
    return state === 'HEALTHY' && generation > group.generation
  })
  const replaced = await fleet.get(group.id)
  expect(replaced.members.map(({ name }) => name)).toEqual(group.members.map(({ name }) => name))
  expect([replaced.instances[0], replaced.instances[2]]).toEqual([group.instances[0], group.instances[2]])
  expect(replaced.instances[1]).not.toBe(group.instances[1])
  expect(replaced.members[1]!.private_address).not.toBe(group.members[1]!.private_address)
  const { items } = await fleet.service.ok('instanceGroupOperationList')
  expect(items[0]).toMatchObject({ state: 'SUCCEEDED', metadata: { operation_name: 'REPLACE' } })
  await fleet.service.simulator().setHostLost(host!.name, false)
  await eventually(async () => {
    await pass('30 seconds')
    return (await fleet.service.sql('SELECT FROM vms WHERE deleted_at IS NOT NULL')).length === 0
  })
})

test('each member receives the names, addresses and ranks of all members', async () => {
  const group = await fleet.newGroup(3)
  const specs = await fleet.service.sql<{ id: string; group: Rendezvous }>(
    `SELECT id, spec -> 'group' AS group FROM simulated_vms WHERE NOT is_removed`,
  )
  for (const { vm_id, rank } of group.members)
    expect(specs.find(({ id }) => id === vm_id)!.group).toEqual({
      ...{ id: group.id, name: group.name, generation: 1, rank },
      members: group.members.map(({ name, private_address }) => ({
        name,
        address: private_address,
        hostKey: '',
      })),
    })
})

test('after three failed groups in a day, members are billed as soon as they respond', async () => {
  await fleet.service.simulator().addFault({ method: 'ensureVm', kind: 'reject', times: 1_000 })
  for (let failure = 0; failure < 3; failure++) {
    const { operation_id } = await fleet.beginGroup(groupBody(1))
    expect(await fleet.service.advanceUntilEnded(operation_id)).toMatchObject({ state: 'FAILED' })
  }
  await fleet.service.simulator().clearFaults()
  const { id, operation_id, names } = await fleet.slowGroup(2)
  await fleet.respond(names.slice(0, 1))
  await eventually(async () => {
    await fleet.hasten()
    const meters = await fleet.service.sql(
      'SELECT FROM vms WHERE group_id = $1 AND metered_since IS NOT NULL',
      [id],
    )
    return meters.length === 1
  })
  await fleet.respond(names)
  expect(await fleet.endedNow(operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  await fleet.service.clock.advance('2 days')
})
