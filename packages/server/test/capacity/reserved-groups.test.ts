import { checkInvariants } from '@slipway/testing/invariants.ts'
import { keepSessions } from '@slipway/testing/people.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { groupBody, type SmallFleet, startSmallFleet } from '../support/fleets/small-fleet.ts'

/** Two hosts with four GPUs each. The demo's organization has reserved four of the eight GPUs. */
let fleet: SmallFleet
let reservationId: string
beforeAll(async () => {
  fleet = await startSmallFleet([4, 4], () => {}, '2026-11-01T00:00:00Z')
  const { service } = fleet
  await keepSessions(service)
  const { organization_id, project_id, operator_key } = service.credentials
  const { id } = await service.ok('adminReservationCreate', {
    token: operator_key,
    body: {
      ...{
        organization_id,
        billing_project_id: project_id,
        type: 'a100.2x',
        location: 'us-east1-a',
        count: 2,
      },
      ...{ contract_start_date: '2026-11-01T00:00:00Z', contract_end_date: '2027-01-01T00:00:00Z' },
      usd_per_gpu_hour: 1,
    },
  })
  reservationId = id
  await fleet.settled()
})
afterAll(() => fleet?.service.close())

async function newGroup(body: object) {
  const { operation } = await fleet.service.ok('instanceGroupCreate', { body })
  expect(await fleet.service.ended(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  return operation.metadata.id
}
const inReservation = async () =>
  (await fleet.service.ok('vmList')).items.filter((vm) => vm.reservation_id === reservationId).length

test('the members of a group use the reservation first, and then the stock', async () => {
  const { service } = fleet
  const id = await newGroup(groupBody(6))
  expect(await inReservation()).toBe(4)
  await service.clock.advance('1 second')
  await checkInvariants(service)
  await fleet.removeGroup(id)
  const onDemand = { reservation_specification: { selection_strategy: 'on_demand' } }
  const other = await newGroup(groupBody(4, {}, onDemand))
  expect(await inReservation()).toBe(0)
  expect(await service.call('instanceGroupCreate', { body: groupBody(1, {}, onDemand) })).toMatchObject({
    status: 409,
    body: { code: 'out_of_stock', fits: 0 },
  })
  await fleet.removeGroup(other)
})

test('a group in one reservation has as many members as fit there, and spreads them over its hosts', async () => {
  const { service } = fleet
  const inside = { reservation_specification: { id: reservationId } }
  expect(await service.call('instanceGroupCreate', { body: groupBody(5, {}, inside) })).toMatchObject({
    status: 409,
    body: { code: 'out_of_stock', fits: 4, available_locations: [] },
  })
  const id = await newGroup(groupBody(2, { placement_policy: 'spread' }))
  const hosts = await service.sql('SELECT DISTINCT host_id FROM vms WHERE group_id = $1', [id])
  expect(hosts).toHaveLength(2)
  await fleet.removeGroup(id)
})

test('a group with location “any” is placed where its organization has reserved GPUs', async () => {
  const { service } = fleet
  const other = await fleet.addTenant('Others')
  const asOther = { token: other.token, params: { project_id: other.project_id } }
  const { operation } = await service.ok('instanceGroupCreate', { ...asOther, body: groupBody(4) })
  await fleet.settled()
  expect(await service.call('instanceGroupCreate', { ...asOther, body: groupBody(1) })).toMatchObject({
    status: 409,
  })
  const id = await newGroup(groupBody(4, {}, { location: 'any' }))
  expect(await inReservation()).toBe(4)
  await fleet.removeGroup(id)
  const params = { ...asOther.params, instance_group_id: operation.metadata.id }
  await service.ok('instanceGroupDelete', { ...asOther, params })
  await fleet.settled()
})

test('a stopped group starts inside its reservation', async () => {
  const { service } = fleet
  const id = await newGroup(groupBody(4))
  const params = { instance_group_id: id }
  await service.clock.advance('1 second')
  await fleet.succeeded(await service.ok('instanceGroupStop', { params }))
  await fleet.settled()
  await service.clock.advance('1 second')
  await fleet.succeeded(await service.ok('instanceGroupStart', { params }))
  expect(await inReservation()).toBe(4)
  await service.clock.advance('1 second')
  await checkInvariants(service)
  await fleet.removeGroup(id)
})

test('usage by resource names the reservation of a VM', async () => {
  const { service } = fleet
  const inside = await fleet.newVm()
  const outside = await fleet.newVm({ reservation_specification: { selection_strategy: 'on_demand' } })
  await service.clock.advance('1 day 1 hour')
  await service.server.billing.once()
  const { items } = await service.ok('projectUsage', { query: { group_by: 'resource' } })
  const reservationOf = (id: string) => items.find(({ resource_id }) => resource_id === id)?.reservation_id
  expect([reservationOf(inside), reservationOf(outside)]).toEqual([reservationId, ''])
})
