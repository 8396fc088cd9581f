import { eventually } from '@slipway/testing/eventually.ts'
import { settle } from '@slipway/testing/invariants.ts'
import { addProject, ownerToken } from '@slipway/testing/people.ts'
import { freshName, vmBody } from '@slipway/testing/resources.ts'
import { countOf } from '@slipway/testing/setup/counts.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type GroupFleet, hostCount, startGroupFleet } from '../support/fleets/group-fleet.ts'
import { groupBody } from '../support/fleets/small-fleet.ts'

let fleet: GroupFleet
beforeAll(async () => {
  fleet = await startGroupFleet()
})
afterAll(() => fleet?.service.close())
afterEach(() => fleet.clear())

test('a group runs with all its members, which are numbered and ranked', async () => {
  const group = await fleet.newGroup(3, { labels: { team: 'ml' } })
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
  const { items } = await fleet.service.ok('vmList')
  expect(items.map((vm) => vm.instance_group_id)).toEqual([group.id, group.id, group.id])
  expect(new Set(items.map((vm) => vm.started_at)).size).toBe(1)
  expect(group.active_instances).toEqual(group.instances)
  const { items: operations } = await fleet.service.ok('instanceGroupOperationList')
  expect(operations[0]).toMatchObject({ metadata: { type: 'instance_group', id: group.id } })
})

test('a group of eight with room for seven is refused with the number that fits, and leaves nothing', async () => {
  const taken = await fleet.service.ok('vmCreate', { body: vmBody({ type: 'a100.8x' }) })
  await fleet.service.ended(taken.operation.operation_id)
  const before = await fleet.store()
  const response = await fleet.create(groupBody(8, {}, { type: 'a100.8x' }))
  expect(response).toMatchObject({
    status: 409,
    body: { code: 'out_of_stock', fits: 7, available_locations: ['us-west1-a', 'eu-north1-a'] },
  })
  expect(await fleet.store()).toEqual(before)
})

test('if two groups of five request the same eight hosts at the same time, exactly one is admitted', {
  timeout: 900_000,
}, async () => {
  for (let round = 0; round < countOf('groupRaces'); round++) {
    const responses = await Promise.all([1, 2].map(() => fleet.create(groupBody(5, {}, { type: 'a100.8x' }))))
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 409])
    expect(responses.find(({ status }) => status === 409)!.body).toMatchObject({ fits: 3 })
    for (const { id } of (await fleet.service.ok('instanceGroupList')).items) await fleet.removeGroup(id)
    await settle(fleet.service)
  }
})

test('a group with location “any” is placed where all its members fit', async () => {
  const first = await fleet.newGroup(6, {}, { type: 'a100.8x' })
  const second = await fleet.newGroup(6, {}, { type: 'a100.8x', location: 'any' })
  expect([first.location, second.location]).toEqual(['us-east1-a', 'us-west1-a'])
})

test('spread puts each member on a separate host or refuses the group; pack uses few hosts', async () => {
  const response = await fleet.create(groupBody(hostCount + 1, { placement_policy: 'spread' }))
  expect(response).toMatchObject({ status: 409, body: { code: 'out_of_stock', fits: hostCount } })
  const hostsOf = async (id: string) =>
    (await fleet.service.sql('SELECT DISTINCT host_id FROM vms WHERE group_id = $1', [id])).length
  const spread = await fleet.newGroup(hostCount - 1, { placement_policy: 'spread' })
  expect(await hostsOf(spread.id)).toBe(hostCount - 1)
  expect(await hostsOf((await fleet.changeGroup(spread.id, { desired_count: hostCount })).id)).toBe(hostCount)
  const packed = await fleet.newGroup(8, { placement_policy: 'pack' }, { type: 'a100.2x' })
  expect(await hostsOf(packed.id)).toBe(3)
})

test('a group grows by all new members or none, from the lowest free number; it shrinks from the highest number', async () => {
  const group = await fleet.newGroup(4, {}, { type: 'a100.8x' })
  const params = { instance_group_id: group.id }
  const refused = await fleet.service.call('instanceGroupUpdate', { params, body: { desired_count: 9 } })
  expect(refused).toMatchObject({ status: 409, body: { code: 'out_of_stock', fits: 4 } })
  const removal = await fleet.service.ok('vmDelete', { params: { vm_id: group.instances[1]! } })
  await fleet.service.ended(removal.operation.operation_id)
  expect(await fleet.get(group.id)).toMatchObject({ state: 'HEALTHY', desired_count: 3 })
  await settle(fleet.service)
  const grown = await fleet.changeGroup(group.id, { desired_count: 5 })
  expect(grown.members.map(({ name }) => name)).toEqual(
    [1, 2, 3, 4, 5].map((number) => `${group.name}-${number}`),
  )
  expect(grown).toMatchObject({ state: 'HEALTHY', desired_count: 5, running_instance_count: 5 })
  expect(grown.generation).toBeGreaterThan(group.generation)
  const shrunk = await fleet.changeGroup(group.id, { desired_count: 2 })
  expect(shrunk.members.map(({ name }) => name)).toEqual([1, 2].map((number) => `${group.name}-${number}`))
  expect(await fleet.changeGroup(group.id, { desired_count: 0 })).toMatchObject({
    state: 'HEALTHY',
    members: [],
  })
})

test('a group stops and starts as a whole: all members start, or none', async () => {
  const group = await fleet.newGroup(5, {}, { type: 'a100.8x' })
  const params = { instance_group_id: group.id }
  const stop = await fleet.service.ok('instanceGroupStop', { params })
  expect(await fleet.service.ended(stop.operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect(await fleet.get(group.id)).toMatchObject({
    state: 'HEALTHY',
    running_instance_count: 0,
    desired_count: 5,
  })
  await settle(fleet.service)
  const other = await fleet.newGroup(4, {}, { type: 'a100.8x' })
  const before = await fleet.store()
  const refused = await fleet.service.call('instanceGroupStart', { params })
  expect(refused).toMatchObject({ status: 409, body: { code: 'out_of_stock', fits: 4 } })
  expect(await fleet.store()).toEqual(before)
  await fleet.removeGroup(other.id)
  await settle(fleet.service)
  const start = await fleet.service.ok('instanceGroupStart', { params })
  expect(await fleet.service.ended(start.operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect(await fleet.get(group.id)).toMatchObject({ state: 'HEALTHY', running_instance_count: 5 })
})

test('a group is protected from deletion, and so is a group with a protected member', async () => {
  const group = await fleet.newGroup(1, { deletion_protection: true })
  const params = { instance_group_id: group.id }
  expect(await fleet.service.call('instanceGroupDelete', { params })).toMatchObject({
    status: 409,
    body: { code: 'protected' },
  })
  await fleet.changeGroup(group.id, { deletion_protection: false, labels: { team: 'ml' } })
  const vm = { params: { vm_id: group.instances[0]! } }
  await fleet.service.ok('vmUpdate', { ...vm, body: { deletion_protection: true } })
  expect(await fleet.service.call('instanceGroupDelete', { params })).toMatchObject({
    status: 409,
    body: { code: 'protected' },
  })
  const shrink = { params, body: { desired_count: 0 } }
  expect(await fleet.service.call('instanceGroupUpdate', shrink)).toMatchObject({
    status: 409,
    body: { code: 'protected' },
  })
  await fleet.service.ok('vmUpdate', { ...vm, body: { deletion_protection: false } })
})

test('new members come from the template of the group, which can be replaced', async () => {
  const template = (version: object) =>
    fleet.service.ok('instanceTemplateCreate', {
      body: { name: 'trainer', new_version: true, ...groupBody(1).vm, ...version },
    })
  const [first, second] = [await template({ labels: { v: '1' } }), await template({ labels: { v: '2' } })]
  const { id, operation_id } = await fleet.beginGroup({
    name: freshName('group'),
    desired_count: 1,
    template_id: first.id,
  })
  await fleet.service.ended(operation_id)
  await fleet.changeGroup(id, { template_id: second.id })
  await fleet.changeGroup(id, { desired_count: 2 })
  const { items } = await fleet.service.ok('vmList')
  const found = items.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  expect(found.map((vm) => [vm.labels.v, vm.instance_template_id])).toEqual([
    ['1', first.id],
    ['2', second.id],
  ])
  const wrong = { params: { instance_group_id: id }, body: { template_id: id } }
  expect(await fleet.service.call('instanceGroupUpdate', wrong)).toMatchObject({
    status: 400,
    body: { details: [{ field: '/template_id' }] },
  })
})

test('a project with a group is not empty, even if the group has no members', async () => {
  const token = await ownerToken(fleet.service)
  const { organization_id } = fleet.service.credentials
  const project_id = await addProject(fleet.service, token, organization_id, freshName('project'))
  const ended = ({ operation }: { operation: { operation_id: string } }) =>
    eventually(async () => {
      const params = { project_id, operation_id: operation.operation_id }
      return (await fleet.service.ok('operationGet', { token, params })).state === 'SUCCEEDED'
    })
  const accepted = await fleet.service.ok('instanceGroupCreate', {
    token,
    params: { project_id },
    body: groupBody(1),
  })
  await ended(accepted)
  const params = { project_id, instance_group_id: accepted.operation.metadata.id }
  await ended(await fleet.service.ok('instanceGroupUpdate', { token, params, body: { desired_count: 0 } }))
  const refused = await fleet.service.call('projectDelete', { token, params: { project_id } })
  expect(refused).toMatchObject({
    status: 409,
    body: { message: expect.stringContaining('instance groups (1)') },
  })
  await ended(await fleet.service.ok('instanceGroupDelete', { token, params }))
  await fleet.service.ok('projectDelete', { token, params: { project_id } })
})

test('an error in the settings of members names the field in the request for the group', async () => {
  const response = await fleet.create(groupBody(2, {}, { image: 'none:latest' }))
  expect(response).toMatchObject({ status: 400, body: { details: [{ field: '/vm/image' }] } })
  const incomplete = await fleet.create({ name: freshName('group'), desired_count: 2, vm: { image: 'x' } })
  expect(incomplete).toMatchObject({ status: 400, body: { details: [{ field: '/vm/type' }] } })
  const group = await fleet.newGroup(1)
  expect(await fleet.create({ ...groupBody(1), name: group.name })).toMatchObject({
    body: { code: 'already_exists' },
  })
})
