import { eventually } from '@slipway/testing/eventually.ts'
import { keepSessions } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type SmallFleet, startSmallFleet } from '../support/fleets/small-fleet.ts'

/** Two months, of 30 and 31 days. */
const termDays = 61

/** Two hosts with four GPUs each. Every test begins at a later time. */
let fleet: SmallFleet
let [begin, start, end] = ['', '', '']
beforeAll(async () => {
  fleet = await startSmallFleet([4, 4], () => {}, '2026-11-01T00:00:00Z')
  await keepSessions(fleet.service)
})
afterAll(() => fleet?.service.close())
beforeEach(async () => {
  const [moment] = await fleet.service.sql<{ now: Date }>('SELECT slipway_now() AS now')
  const inDays = (days: number) => new Date(moment!.now.getTime() + days * 86_400_000).toISOString()
  ;[begin, start, end] = [inDays(0), inDays(1), inDays(1 + termDays)]
})
afterEach(() => fleet.clear())

const operator = () => ({ token: fleet.service.credentials.operator_key })

/** Sells the demo's organization a reservation for two VMs with two GPUs each, for two months. */
const sell = (more: object = {}) =>
  fleet.service.ok('adminReservationCreate', {
    ...operator(),
    body: {
      organization_id: fleet.service.credentials.organization_id,
      billing_project_id: fleet.service.credentials.project_id,
      type: 'a100.2x',
      location: 'us-east1-a',
      count: 2,
      contract_start_date: start,
      contract_end_date: end,
      usd_per_gpu_hour: 1.1,
      ...more,
    },
  })
const read = (reservation_id: string) =>
  fleet.service.ok('adminReservationGet', { ...operator(), params: { reservation_id } })
const advance = async (interval: string) => {
  await fleet.service.clock.advance(interval)
  await fleet.settled()
}
const vmOf = (vm_id: string) => fleet.service.ok('vmGet', { params: { vm_id } })
const costOf = async (resource_id: string) =>
  (await fleet.service.ok('projectResourceCost', { params: { resource_id } })).usd

test('the owner gets the reserved GPUs even if other tenants have filled the fleet, and no more', async () => {
  const { service } = fleet
  const reservation = await sell()
  expect(reservation).toMatchObject({
    reservation_type: 'capacity',
    product_line: 'a100',
    state: 'scheduled',
    duration: 2,
    quantity: 4,
    price: '1.1',
    contract_start_date: start,
    contract_end_date: end,
  })
  await advance('1 day')
  expect(await read(reservation.id)).toMatchObject({
    state: 'active',
    delivered_quantity: 4,
    used_quantity: 0,
  })
  const other = await fleet.addTenant('Others')
  const asOther = { token: other.token, params: { project_id: other.project_id } }
  for (let n = 0; n < 4; n++) await service.ok('vmCreate', { ...asOther, body: vmBody() })
  await fleet.settled()
  expect(await service.call('vmCreate', { ...asOther, body: vmBody() })).toMatchObject({ status: 409 })

  // Each caller sees what it can get.
  const query = { product_name: 'a100.2x', location: 'us-east1-a' }
  const seen = async (caller: object) => [
    (await service.ok('capacityList', { ...caller, query })).items[0]!.quantity,
    (await service.ok('availabilityList', { ...caller, query })).items[0]!.available,
  ]
  expect(await seen({})).toEqual([2, true])
  expect(await seen(asOther)).toEqual([0, false])

  const id = await fleet.newVm({ type: 'a100.2x' })
  await fleet.newVm()
  await fleet.newVm({ reservation_specification: { id: reservation.id } })
  expect(await vmOf(id)).toMatchObject({
    reservation_id: reservation.id,
    commitment_period: 2,
    commitment_end: end,
    usd_per_hour: 0,
  })
  expect(await read(reservation.id)).toMatchObject({ used_quantity: 4 })
  expect((await read(reservation.id)).vm_ids).toHaveLength(3)
  expect(await service.call('vmCreate', { body: vmBody() })).toMatchObject({
    status: 409,
    body: { code: 'out_of_stock' },
  })
  // Members see the reservation, but only admins see its price.
  const { items } = await service.ok('reservationList', { token: (await fleet.member()).token })
  expect(items).toMatchObject([{ id: reservation.id, price: '' }])
})

test('a VM is stopped and started inside its reservation', async () => {
  const { id } = await sell({ contract_start_date: begin, count: 4 })
  await fleet.settled()
  const vm = await fleet.newVm({ type: 'a100.4x' })
  await fleet.newVm({ type: 'a100.4x' })
  await fleet.service.clock.advance('1 second')
  await fleet.succeeded(await fleet.act(vm, { action: 'STOP' }))
  expect(await vmOf(vm)).toMatchObject({ reservation_id: '', commitment_period: 0, commitment_end: '' })
  await fleet.settled()
  const other = await fleet.addTenant('Others')
  const asOther = { token: other.token, params: { project_id: other.project_id } }
  expect(await fleet.service.call('vmCreate', { ...asOther, body: vmBody() })).toMatchObject({ status: 409 })
  await fleet.service.clock.advance('1 second')
  await fleet.succeeded(await fleet.act(vm, { action: 'START' }))
  expect(await vmOf(vm)).toMatchObject({ reservation_id: id, state: 'STATE_RUNNING' })
})

test('a reservation costs its price for all its GPUs and its whole term, used or not, and its VMs cost nothing', async () => {
  const { id } = await sell()
  await advance('1 day')
  await advance('1 day')
  const vm = await fleet.newVm({ type: 'a100.2x' })
  await advance('1 day')
  // Two of 61 days have passed.
  expect(await costOf(id)).toBeCloseTo(4 * 1.1 * 48, 2)
  expect(await costOf(vm)).toBe(0)
  expect(await vmOf(vm)).toMatchObject({ cost_usd: 0 })
  await advance(`${termDays - 2} days`)
  expect(await costOf(id)).toBeCloseTo(4 * 1.1 * 24 * termDays, 2)
  expect(await read(id)).toMatchObject({ state: 'ended' })
  // The prices of contracts are not in the price list.
  const names = (await fleet.service.ok('priceList')).items.map(({ product_name }) => product_name)
  expect(names.filter((name) => /reserv/.test(name))).toEqual([])
})

test('a reservation that begins while the service checks it costs its price from then on', async () => {
  const { service } = fleet
  const rows = (sql: string) => async () => (await service.sql(sql)).length > 0
  const blocker = new pg.Client(service.databaseUrl)
  await blocker.connect()
  await blocker.query('BEGIN')
  await blocker.query('SELECT FROM hosts FOR UPDATE')
  const { id } = await sell()
  // The check has read the time and waits for the hosts.
  await eventually(
    rows(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
            AND query LIKE 'SELECT id FROM hosts WHERE id = ANY%'`),
  )
  await service.clock.advance('1 day')
  await blocker.query('COMMIT')
  await blocker.end()
  await eventually(rows('SELECT FROM reservations WHERE delivered_at IS NOT NULL AND ended_at IS NULL'))
  await fleet.settled()
  await advance('1 hour')
  expect(await costOf(id)).toBeCloseTo(4 * 1.1, 2)
})

test('when a reservation ends, after four warnings, its VMs keep running at the list price', async () => {
  const { id } = await sell()
  await advance('1 day')
  const vm = await fleet.newVm({ type: 'a100.2x' })
  const { usd_per_hour } = (await fleet.service.ok('offerList', { query: { gpu_model: 'a100' } })).items.find(
    (offer) => offer.type === 'a100.2x',
  )!
  for (const day of ['31 days', '23 days', '6 days', '23 hours 30 minutes']) await advance(day)
  const ending = () =>
    fleet.service.sql(
      `SELECT 1 FROM (SELECT type, resource_id FROM events UNION ALL SELECT type, resource_id FROM events_pending) e
       WHERE type = 'reservation.ending' AND resource_id = $1`,
      [id],
    )
  expect(await ending()).toHaveLength(4)
  await advance('30 minutes')
  const after = await vmOf(vm)
  expect(after).toMatchObject({ state: 'STATE_RUNNING', reservation_id: '', usd_per_hour, cost_usd: 0 })
  await advance('1 hour')
  expect(await costOf(vm)).toBeCloseTo(usd_per_hour!, 4)
  expect(await costOf(id)).toBeCloseTo(4 * 1.1 * 24 * termDays, 2)
  // The GPUs that the reservation did not use are in stock.
  expect(await fleet.service.sql(`SELECT FROM gpus WHERE state = 'free'`)).toHaveLength(6)
})

test('a reservation whose GPUs are not free at its start stops no VM, and is billed for each GPU from its delivery', async () => {
  const vms: string[] = []
  for (let n = 0; n < 8; n++)
    vms.push(await fleet.newVm({ reservation_specification: { selection_strategy: 'on_demand' } }))
  const { id } = await sell()
  await advance('1 day')
  expect(await read(id)).toMatchObject({ state: 'late', delivered_quantity: 0 })
  for (const vm of vms) expect((await vmOf(vm)).state).toBe('STATE_RUNNING')
  await advance('10 hours')
  // The GPUs of one host become free: the reservation gets them before the queue.
  const waiting = await fleet.wait()
  const [first] = await fleet.service.sql<{ host_id: string }>('SELECT host_id FROM vms WHERE id = $1', [
    vms[0],
  ])
  const there = await fleet.service.sql<{ id: string }>('SELECT id FROM vms WHERE host_id = $1', [
    first!.host_id,
  ])
  for (const vm of there.slice(0, 2)) await fleet.free(vm.id)
  expect(await read(id)).toMatchObject({ state: 'late', delivered_quantity: 2 })
  await advance('10 hours')
  expect(await costOf(id)).toBeCloseTo(2 * 1.1 * 10, 2)
  for (const vm of there.slice(2)) await fleet.free(vm.id)
  expect(await read(id)).toMatchObject({ state: 'active', delivered_quantity: 4 })
  expect((await fleet.request(waiting.id)).state).toBe('waiting')
  await advance('1 hour')
  expect(await costOf(id)).toBeCloseTo(2 * 1.1 * 10 + 4 * 1.1, 2)
})

test('a running VM moves into a reservation and out of it', async () => {
  const vm = await fleet.newVm({ type: 'a100.2x' })
  const { id } = await sell({ contract_start_date: begin })
  await fleet.settled()
  await advance('1 hour')
  await fleet.succeeded(await fleet.act(vm, { action: 'RESERVE', reservation_id: id }))
  await fleet.settled()
  expect(await vmOf(vm)).toMatchObject({ reservation_id: id, usd_per_hour: 0 })
  expect(await read(id)).toMatchObject({ delivered_quantity: 4, used_quantity: 2, vm_ids: [vm] })
  const cost = await costOf(vm)
  await advance('1 hour')
  expect(await costOf(vm)).toBe(cost)
  await fleet.succeeded(await fleet.act(vm, { action: 'UNRESERVE' }))
  await fleet.settled()
  expect(await vmOf(vm)).toMatchObject({ reservation_id: '' })
  expect(await read(id)).toMatchObject({ delivered_quantity: 4, used_quantity: 0 })
  await advance('1 hour')
  expect(await costOf(vm)).toBeGreaterThan(cost)
})

test('an operator changes the end and the projects of a reservation, and ends it', async () => {
  const { id } = await sell()
  const params = { reservation_id: id }
  const inTenDays = new Date(Date.parse(begin) + 10 * 86_400_000).toISOString()
  const changed = await fleet.service.ok('adminReservationUpdate', {
    ...operator(),
    params,
    body: { contract_end_date: inTenDays, projects: [fleet.service.credentials.project_id] },
  })
  expect(changed).toMatchObject({ contract_end_date: inTenDays, duration: 0 })
  await advance('1 day')
  expect(await fleet.service.ok('adminReservationEnd', { ...operator(), params })).toMatchObject({
    state: 'ended',
    delivered_quantity: 0,
  })
  expect(await fleet.service.call('adminReservationEnd', { ...operator(), params })).toMatchObject({
    status: 409,
  })
  const list = { ...operator(), query: { status: 'ended' } }
  expect((await fleet.service.ok('adminReservationList', list)).items[0]).toMatchObject({ id })
})
