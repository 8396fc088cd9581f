import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { addProject, ownerToken } from '@slipway/testing/people.ts'
import { freshName, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Rendezvous } from '../../src/domain/guest/rendezvous.ts'

/** Eight hosts with eight GPUs each; a whole-host VM takes one of them. */
const hostCount = 8
let service: TestService
beforeAll(async () => {
  service = await startService((config) => {
    for (const location of config.locations)
      if (location.engine === 'simulated')
        location.simulated.hosts = [{ model: 'A100 40GB PCIe', count: hostCount, gpus: 8 }]
  })
  await settle(service)
})
afterAll(() => service.close())

afterEach(async () => {
  await service.clock.thaw()
  service.simulator().setBootMs([0, 0])
  await service.simulator().clearFaults()
  for (const { id } of (await service.ok('instanceGroupList')).items) await removed(id)
  for (const { id } of (await service.ok('vmList')).items)
    await service.ok('vmDelete', { params: { vm_id: id } })
  await eventually(async () => (await service.ok('vmList')).items.length === 0)
  await settle(service)
  await checkInvariants(service)
})

const members = (changes: Record<string, unknown> = {}) => {
  const { name: _, ...vm } = vmBody(changes)
  return vm
}
const groupBody = (desired_count: number, changes: object = {}, vm: Record<string, unknown> = {}) => ({
  name: freshName('group'),
  desired_count,
  vm: members(vm),
  ...changes,
})
const create = (body: object) => service.call('instanceGroupCreate', { body })
const get = (instance_group_id: string) => service.ok('instanceGroupGet', { params: { instance_group_id } })

async function begun(body: object) {
  const { operation } = await service.ok('instanceGroupCreate', { body })
  return { id: operation.metadata.id, operation_id: operation.operation_id }
}

async function newGroup(desired_count: number, changes: object = {}, vm: Record<string, unknown> = {}) {
  const { id, operation_id } = await begun(groupBody(desired_count, changes, vm))
  expect(await service.ended(operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  return get(id)
}

async function removed(instance_group_id: string, query = {}) {
  const params = { instance_group_id }
  await service.ok('instanceGroupUpdate', { params, body: { deletion_protection: false } })
  const { operation } = await service.ok('instanceGroupDelete', { params, query })
  expect(await service.endedSoon(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED', result: null })
}

async function changed(instance_group_id: string, body: object) {
  const { operation } = await service.ok('instanceGroupUpdate', { params: { instance_group_id }, body })
  const ended = await service.ended(operation.operation_id)
  expect(ended).toMatchObject({ state: 'SUCCEEDED' })
  return get(instance_group_id)
}

const store = async () =>
  (
    await service.sql(
      `SELECT (SELECT count(*) FROM vms) AS vms, (SELECT count(*) FROM instance_groups) AS groups,
              (SELECT count(*) FROM operations) AS operations, (SELECT sum(used) FROM quotas) AS used,
              (SELECT count(*) FROM gpus WHERE state <> 'free') AS claimed,
              (SELECT count(*) FROM events_written) AS events`,
    )
  )[0]

test('a group runs with all its members, which are numbered and ranked', async () => {
  const group = await newGroup(3, { labels: { team: 'ml' } })
  const names = [1, 2, 3].map((number) => `${group.name}-${number}`)
  expect(group).toMatchObject({
    ...{
      state: 'HEALTHY',
      desired_count: 3,
      running_instance_count: 3,
      location: 'us-east1-a',
      generation: 1,
    },
    members: names.map((name, rank) => ({ name, rank, state: 'STATE_RUNNING' })),
    ...{ inactive_instances: [], labels: { team: 'ml' } },
  })
  const { items } = await service.ok('vmList')
  expect(items.map((vm) => vm.instance_group_id)).toEqual([group.id, group.id, group.id])
  expect(new Set(items.map((vm) => vm.started_at)).size).toBe(1)
  expect(group.active_instances).toEqual(group.instances)
  const { items: operations } = await service.ok('instanceGroupOperationList')
  expect(operations[0]).toMatchObject({ metadata: { type: 'instance_group', id: group.id } })
})

test('a group of eight with room for seven is refused, says that seven fit, and leaves nothing', async () => {
  const taken = await service.ok('vmCreate', { body: vmBody({ type: 'a100.8x' }) })
  await service.ended(taken.operation.operation_id)
  const before = await store()
  const answer = await create(groupBody(8, {}, { type: 'a100.8x' }))
  expect(answer).toMatchObject({
    status: 409,
    body: { code: 'out_of_stock', fits: 7, available_locations: ['us-west1-a', 'eu-north1-a'] },
  })
  expect(await store()).toEqual(before)
})

test('of two groups of five that want eight hosts at once, exactly one is admitted', async () => {
  for (let round = 0; round < 10; round++) {
    const answers = await Promise.all([1, 2].map(() => create(groupBody(5, {}, { type: 'a100.8x' }))))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
    expect(answers.find(({ status }) => status === 409)!.body).toMatchObject({ fits: 3 })
    for (const { id } of (await service.ok('instanceGroupList')).items) await removed(id)
    await settle(service)
  }
})

test('a group in any location is where all of it fits', async () => {
  const first = await newGroup(6, {}, { type: 'a100.8x' })
  const second = await newGroup(6, {}, { type: 'a100.8x', location: 'any' })
  expect([first.location, second.location]).toEqual(['us-east1-a', 'us-west1-a'])
})

test('spread puts each member on a host of its own or refuses; pack uses few hosts', async () => {
  const answer = await create(groupBody(hostCount + 1, { placement_policy: 'spread' }))
  expect(answer).toMatchObject({ status: 409, body: { code: 'out_of_stock', fits: hostCount } })
  const hostsOf = async (id: string) =>
    (await service.sql('SELECT DISTINCT host_id FROM vms WHERE group_id = $1', [id])).length
  const spread = await newGroup(hostCount - 1, { placement_policy: 'spread' })
  expect(await hostsOf(spread.id)).toBe(hostCount - 1)
  expect(await hostsOf((await changed(spread.id, { desired_count: hostCount })).id)).toBe(hostCount)
  const packed = await newGroup(8, { placement_policy: 'pack' }, { type: 'a100.2x' })
  expect(await hostsOf(packed.id)).toBe(3)
})

/** Lets these members respond now, and the others in an hour. */
async function respond(names: string[]) {
  await service.sql(
    `UPDATE simulated_vms s SET ready_at = CASE WHEN v.name = ANY ($1) THEN slipway_now() - interval '1 second'
                                              ELSE slipway_now() + interval '1 hour' END
     FROM vms v WHERE v.id = s.id`,
    [names],
  )
  await hasten()
}

async function hasten() {
  await service.sql('UPDATE operation_queue SET run_at = slipway_now() WHERE lease_token IS NULL')
  service.server.services.signals.send('operations')
}

const waiting = async (id: string) =>
  (
    await service.sql<{ name: string }>(
      'SELECT name FROM vms WHERE group_id = $1 AND booted_at IS NOT NULL ORDER BY name',
      [id],
    )
  ).map(({ name }) => name)

const costs = async () => (await service.ok('vmList')).items.map(({ cost_usd }) => cost_usd)

async function slowGroup(count: number) {
  await service.clock.freeze()
  service.simulator().setBootMs([3_600_000, 3_600_000])
  const body = groupBody(count)
  const group = await begun(body)
  await eventually(async () => {
    const rows = await service.sql('SELECT FROM simulated_vms WHERE NOT is_removed')
    return rows.length === count
  })
  const names = Array.from({ length: count }, (_, index) => `${body.name}-${index + 1}`)
  return { ...group, names }
}

test('while one member is slow no member runs or costs anything, and then all run from the same moment', async () => {
  const { id, operation_id, names } = await slowGroup(3)
  await respond(names.slice(0, 2))
  await eventually(async () => (await waiting(id)).length === 2)
  await service.clock.advance('299 seconds')
  await hasten()
  expect(await get(id)).toMatchObject({ state: 'UPDATING', running_instance_count: 0 })
  expect(await costs()).toEqual([0, 0, 0])
  await respond(names)
  expect(await service.ended(operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  const { items } = await service.ok('vmList')
  expect(new Set(items.map(({ started_at }) => started_at)).size).toBe(1)
  expect(items.map(({ ssh_destination }) => ssh_destination !== '')).toEqual([true, true, true])
  const { items: events } = await service.ok('eventList', { query: { resource_id: id } })
  expect(events.map(({ type }) => type).filter((type) => type.startsWith('instance_group'))).toEqual([
    'instance_group.healthy',
    'instance_group.creating',
  ])
})

test('members that wait for more than 300 seconds are billed from then on', async () => {
  const { id, operation_id, names } = await slowGroup(3)
  await respond(names.slice(0, 2))
  await eventually(async () => (await waiting(id)).length === 2)
  await service.clock.advance('301 seconds')
  await eventually(async () => {
    await hasten()
    const rows = await service.sql(
      'SELECT FROM usage_intervals i JOIN vms v ON v.id = i.resource_id WHERE upper_inf(period)',
    )
    return rows.length === 2
  })
  await service.clock.advance('100 seconds')
  expect((await costs()).filter((cost) => cost > 0)).toHaveLength(2)
  await respond(names)
  expect(await service.ended(operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  await settle(service)
  await checkInvariants(service)
})

test('a member that does not boot is placed anew once, on another host', async () => {
  const failures = async () =>
    (await service.sql(`SELECT FROM operations WHERE kind = 'vm-create' AND state = 'FAILED'`)).length
  // GPUs of earlier tests may still be in quarantine.
  await settle(service)
  const before = await failures()
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject', times: 1 })
  const group = await newGroup(3)
  expect(group).toMatchObject({ state: 'HEALTHY', running_instance_count: 3 })
  expect(await failures()).toBe(before + 1)
})

test('if a member does not boot twice, the whole group is removed with its error', async () => {
  const before = await store()
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject', times: 1_000 })
  const { id, operation_id } = await begun(groupBody(3))
  expect(await service.endedSoon(operation_id)).toMatchObject({
    state: 'FAILED',
    result: { code: 'engine_error' },
  })
  expect((await service.call('instanceGroupGet', { params: { instance_group_id: id } })).status).toBe(404)
  await settle(service)
  const after = await store()
  expect({ ...after, operations: 0, events: 0 }).toEqual({ ...before, operations: 0, events: 0 })
  expect(await service.sql('SELECT FROM usage_intervals WHERE resource_id = $1', [id])).toEqual([])
})

test('a group grows all or none and fills the lowest free numbers; it shrinks from the highest', async () => {
  const group = await newGroup(4, {}, { type: 'a100.8x' })
  const params = { instance_group_id: group.id }
  const refused = await service.call('instanceGroupUpdate', { params, body: { desired_count: 9 } })
  expect(refused).toMatchObject({ status: 409, body: { code: 'out_of_stock', fits: 4 } })
  const removal = await service.ok('vmDelete', { params: { vm_id: group.instances[1]! } })
  await service.ended(removal.operation.operation_id)
  expect(await get(group.id)).toMatchObject({ state: 'HEALTHY', desired_count: 3 })
  await settle(service)
  const grown = await changed(group.id, { desired_count: 5 })
  expect(grown.members.map(({ name }) => name)).toEqual(
    [1, 2, 3, 4, 5].map((number) => `${group.name}-${number}`),
  )
  expect(grown).toMatchObject({ state: 'HEALTHY', desired_count: 5, running_instance_count: 5 })
  expect(grown.generation).toBeGreaterThan(group.generation)
  const shrunk = await changed(group.id, { desired_count: 2 })
  expect(shrunk.members.map(({ name }) => name)).toEqual([1, 2].map((number) => `${group.name}-${number}`))
  expect(await changed(group.id, { desired_count: 0 })).toMatchObject({ state: 'HEALTHY', members: [] })
})

test('a growth that fails leaves the group as it was', async () => {
  const group = await newGroup(2)
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject', times: 1_000 })
  const { operation } = await service.ok('instanceGroupUpdate', {
    params: { instance_group_id: group.id },
    body: { desired_count: 4 },
  })
  expect(await service.endedSoon(operation.operation_id)).toMatchObject({ state: 'FAILED' })
  expect(await get(group.id)).toMatchObject({
    ...{ state: 'HEALTHY', desired_count: 2, running_instance_count: 2, instances: group.instances },
  })
})

test('a group stops and starts as a whole, and starts all or none', async () => {
  const group = await newGroup(5, {}, { type: 'a100.8x' })
  const params = { instance_group_id: group.id }
  const stop = await service.ok('instanceGroupStop', { params })
  expect(await service.ended(stop.operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect(await get(group.id)).toMatchObject({ state: 'HEALTHY', running_instance_count: 0, desired_count: 5 })
  await settle(service)
  const other = await newGroup(4, {}, { type: 'a100.8x' })
  const before = await store()
  const refused = await service.call('instanceGroupStart', { params })
  expect(refused).toMatchObject({ status: 409, body: { code: 'out_of_stock', fits: 4 } })
  expect(await store()).toEqual(before)
  await removed(other.id)
  await settle(service)
  const start = await service.ok('instanceGroupStart', { params })
  expect(await service.ended(start.operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect(await get(group.id)).toMatchObject({ state: 'HEALTHY', running_instance_count: 5 })
})

test('a group is unhealthy while a member has crashed', async () => {
  const group = await newGroup(2)
  await service.simulator().crashVm(group.instances[0]!)
  await eventually(async () => (await get(group.id)).state === 'UNHEALTHY')
  const { operation } = await service.ok('vmUpdate', {
    params: { vm_id: group.instances[0]! },
    body: { action: 'RESET' },
  })
  await service.ended(operation.operation_id)
  expect(await get(group.id)).toMatchObject({ state: 'HEALTHY', running_instance_count: 2 })
})

test('a deletion while members boot ends the creation, and can take the new disks along', async () => {
  await service.clock.freeze()
  service.simulator().setBootMs([3_600_000, 3_600_000])
  const { id, operation_id } = await begun(groupBody(2, {}, { new_disks: [{ size: '10GiB' }] }))
  await removed(id)
  expect(await service.ended(operation_id)).toMatchObject({ state: 'FAILED', result: { code: 'cancelled' } })
  expect((await service.ok('diskList')).items).toEqual([])
  service.simulator().setBootMs([0, 0])
  await service.clock.thaw()
  const group = await newGroup(2, {}, { new_disks: [{ size: '10GiB' }] })
  expect((await service.ok('diskList')).items).toHaveLength(2)
  await removed(group.id, { delete_disks: true })
  expect((await service.ok('diskList')).items).toEqual([])
})

test('a member that is lost with its host is replaced under its name, with another address', async () => {
  const group = await newGroup(3, { on_member_loss: 'replace', placement_policy: 'spread' })
  const [host] = await service.sql<{ name: string }>(
    'SELECT h.name FROM hosts h JOIN vms v ON v.host_id = h.id WHERE v.id = $1',
    [group.instances[1]!],
  )
  await service.simulator().setHostLost(host!.name, true)
  const pass = async (interval: string) => {
    await service.clock.advance(interval)
    await service.server.reconciler.reports()
    await service.server.reconciler.groups()
  }
  await eventually(async () => {
    await pass('30 seconds')
    return (await get(group.id)).state === 'UNHEALTHY'
  })
  await pass('300 seconds')
  expect((await get(group.id)).instances).toEqual(group.instances)
  await pass('300 seconds')
  await eventually(async () => {
    await hasten()
    const { state, generation } = await get(group.id)
    return state === 'HEALTHY' && generation > group.generation
  })
  const replaced = await get(group.id)
  expect(replaced.members.map(({ name }) => name)).toEqual(group.members.map(({ name }) => name))
  expect([replaced.instances[0], replaced.instances[2]]).toEqual([group.instances[0], group.instances[2]])
  expect(replaced.instances[1]).not.toBe(group.instances[1])
  expect(replaced.members[1]!.private_address).not.toBe(group.members[1]!.private_address)
  const { items } = await service.ok('instanceGroupOperationList')
  expect(items[0]).toMatchObject({ state: 'SUCCEEDED', metadata: { operation_name: 'REPLACE' } })
  await service.simulator().setHostLost(host!.name, false)
  await eventually(async () => {
    await pass('30 seconds')
    return (await service.sql('SELECT FROM vms WHERE deleted_at IS NOT NULL')).length === 0
  })
})

test('each member is told the names, addresses and ranks of all members', async () => {
  const group = await newGroup(3)
  const specs = await service.sql<{ id: string; group: Rendezvous }>(
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

test('the fourth failure of a day makes the wait for members cost money', async () => {
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject', times: 1_000 })
  for (let failure = 0; failure < 3; failure++) {
    const { operation_id } = await begun(groupBody(1))
    expect(await service.endedSoon(operation_id)).toMatchObject({ state: 'FAILED' })
  }
  await service.simulator().clearFaults()
  const { id, operation_id, names } = await slowGroup(2)
  await respond(names.slice(0, 1))
  await eventually(async () => {
    await hasten()
    const meters = await service.sql('SELECT FROM vms WHERE group_id = $1 AND metered_since IS NOT NULL', [
      id,
    ])
    return meters.length === 1
  })
  await respond(names)
  expect(await service.ended(operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  await service.clock.advance('2 days')
})

test('a group is protected from deletion, and so is a group with a protected member', async () => {
  const group = await newGroup(1, { deletion_protection: true })
  const params = { instance_group_id: group.id }
  expect(await service.call('instanceGroupDelete', { params })).toMatchObject({
    status: 409,
    body: { code: 'protected' },
  })
  await changed(group.id, { deletion_protection: false, labels: { team: 'ml' } })
  const vm = { params: { vm_id: group.instances[0]! } }
  await service.ok('vmUpdate', { ...vm, body: { deletion_protection: true } })
  expect(await service.call('instanceGroupDelete', { params })).toMatchObject({
    status: 409,
    body: { code: 'protected' },
  })
  const shrink = { params, body: { desired_count: 0 } }
  expect(await service.call('instanceGroupUpdate', shrink)).toMatchObject({
    status: 409,
    body: { code: 'protected' },
  })
  await service.ok('vmUpdate', { ...vm, body: { deletion_protection: false } })
})

test('new members come from the template of the group, which can be replaced', async () => {
  const template = (version: object) =>
    service.ok('instanceTemplateCreate', {
      body: { name: 'trainer', new_version: true, ...members(), ...version },
    })
  const [first, second] = [await template({ labels: { v: '1' } }), await template({ labels: { v: '2' } })]
  const { id, operation_id } = await begun({
    name: freshName('group'),
    desired_count: 1,
    template_id: first.id,
  })
  await service.ended(operation_id)
  await changed(id, { template_id: second.id })
  await changed(id, { desired_count: 2 })
  const { items } = await service.ok('vmList')
  const found = items.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  expect(found.map((vm) => [vm.labels.v, vm.instance_template_id])).toEqual([
    ['1', first.id],
    ['2', second.id],
  ])
  const wrong = { params: { instance_group_id: id }, body: { template_id: id } }
  expect(await service.call('instanceGroupUpdate', wrong)).toMatchObject({
    status: 400,
    body: { details: [{ field: '/template_id' }] },
  })
})

test('a project with a group is not empty, also if the group has no members', async () => {
  const token = await ownerToken(service)
  const { organization_id } = service.credentials
  const project_id = await addProject(service, token, organization_id, freshName('project'))
  const ended = ({ operation }: { operation: { operation_id: string } }) =>
    eventually(async () => {
      const params = { project_id, operation_id: operation.operation_id }
      return (await service.ok('operationGet', { token, params })).state === 'SUCCEEDED'
    })
  const begun = await service.ok('instanceGroupCreate', { token, params: { project_id }, body: groupBody(1) })
  await ended(begun)
  const params = { project_id, instance_group_id: begun.operation.metadata.id }
  await ended(await service.ok('instanceGroupUpdate', { token, params, body: { desired_count: 0 } }))
  const refused = await service.call('projectDelete', { token, params: { project_id } })
  expect(refused).toMatchObject({
    status: 409,
    body: { message: expect.stringContaining('instance groups (1)') },
  })
  await ended(await service.ok('instanceGroupDelete', { token, params }))
  await service.ok('projectDelete', { token, params: { project_id } })
})

test('what is wrong with a member is said in the field of the group', async () => {
  const answer = await create(groupBody(2, {}, { image: 'none:latest' }))
  expect(answer).toMatchObject({ status: 400, body: { details: [{ field: '/vm/image' }] } })
  const incomplete = await create({ name: freshName('group'), desired_count: 2, vm: { image: 'x' } })
  expect(incomplete).toMatchObject({ status: 400, body: { details: [{ field: '/vm/type' }] } })
  const group = await newGroup(1)
  expect(await create({ ...groupBody(1), name: group.name })).toMatchObject({
    body: { code: 'already_exists' },
  })
})
