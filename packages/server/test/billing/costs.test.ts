import { ownerToken } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let owner: string
beforeAll(async () => {
  service = await startService(withLevers, '2026-11-10T00:00:00Z')
  owner = await ownerToken(service)
})
afterAll(() => service.close())

const create = async (changes = {}) => {
  const { operation } = await service.ok('vmCreate', { body: vmBody(changes) })
  return (await service.ended(operation.operation_id)).metadata.id
}
const eventsOf = (type: string) =>
  service.sql<{ data: Record<string, unknown> }>(
    'SELECT data FROM events_written WHERE type = $1 ORDER BY seq',
    [type],
  )

const advanceTo = (to: string) => service.levers.clock.advance({ to })

test('costs are zero before anything runs', async () => {
  expect(await service.ok('projectCosts')).toEqual({
    usd_per_hour: 0,
    today_usd: 0,
    month_to_date_usd: 0,
    last_month_usd: 0,
    forecast_usd: 0,
    by_product: [],
    as_of: '2026-11-10T00:00:00.000Z',
  })
  const invoices = await service.ok('organizationInvoices', { token: owner })
  expect(invoices).toEqual({ items: [], next_page_token: '' })
})

test('costs follow running resources live, for the project and its organization', async () => {
  const vm_id = await create()
  const disk = await service.ok('diskCreate', {
    body: { name: 'data', size: '1TiB', location: 'us-east1-a' },
  })
  await service.ended(disk.operation.operation_id)
  await advanceTo('2026-11-10T10:00:00Z')
  const expected = {
    usd_per_hour: 1.58312,
    today_usd: 15.8312,
    month_to_date_usd: 15.8312,
    last_month_usd: 0,
    // 20 days and 14 hours are left of November.
    forecast_usd: Number((15.8312 + 494 * 1.58312).toFixed(6)),
    by_product: [
      { product_name: 'a100.1x', usd: 14.5 },
      { product_name: 'persistent-ssd', usd: 1.3312 },
    ],
    as_of: '2026-11-10T10:00:00.000Z',
  }
  expect(await service.ok('projectCosts')).toEqual(expected)
  expect(await service.ok('organizationCosts', { token: owner })).toEqual(expected)
  const { project_id } = service.credentials
  const { items } = await service.ok('organizationProjectList', { token: owner })
  expect(items.find(({ id }) => id === project_id)).toMatchObject({
    vms: 1,
    running_vms: 1,
    usd_per_hour: expected.usd_per_hour,
    month_to_date_usd: expected.month_to_date_usd,
  })
  const all = await service.ok('adminProjectList', { token: service.credentials.operator_key })
  expect(all.items.find(({ id }) => id === project_id)).toMatchObject({
    vms: 1,
    running_vms: 1,
    month_to_date_usd: expected.month_to_date_usd,
  })

  // Closing days changes the source of the numbers, not their values.
  await advanceTo('2026-11-12T00:05:00Z')
  expect(await service.sql('SELECT FROM usage_days')).not.toEqual([])
  const closed = await service.ok('projectCosts')
  // The costs of today cover the five minutes since midnight UTC.
  expect(closed.today_usd).toBe(Number((1.58312 / 12).toFixed(6)))
  await service.sql('TRUNCATE usage_days, usage_days_closed')
  expect(await service.ok('projectCosts')).toEqual(closed)

  const { operation } = await service.ok('vmUpdate', { params: { vm_id }, body: { action: 'STOP' } })
  await service.ended(operation.operation_id)
  expect(await service.ok('projectCosts')).toMatchObject({ usd_per_hour: 0.13312 })
})

test('costs appear as the open invoice, which has its id before it is issued', async () => {
  const open = await service.ok('organizationInvoices', { token: owner })
  expect(open.items).toMatchObject([
    {
      period_start: '2026-11-01T00:00:00.000Z',
      period_end: '2026-12-01T00:00:00.000Z',
      state: 'open',
      lines: [
        { product_name: 'a100.1x', unit: 'vm_hour', quantity: 48.083333, usd: 69.72 },
        { product_name: 'persistent-ssd', unit: 'gb_hour', usd: 6.4 },
      ],
    },
  ])
  expect(open.items[0]!.usd).toBe(76.12)
  await advanceTo('2026-12-01T00:05:00Z')
  const issued = await service.ok('organizationInvoices', { token: owner })
  // The disk still exists, so the invoice also has 23.9917 hours of the 12th and the rest of November.
  expect(issued.items.map(({ id, state }) => [id, state])).toEqual([
    [expect.any(String), 'open'],
    [open.items[0]!.id, 'paid'],
  ])
  const [, paid] = issued.items
  const { last_month_usd } = await service.ok('organizationCosts', { token: owner })
  expect(last_month_usd).toBeCloseTo(paid!.usd, 1)
  expect(paid!.usd).toBe(Number(paid!.lines.reduce((sum, line) => sum + line.usd, 0).toFixed(2)))
  expect(await eventsOf('invoice.paid')).toHaveLength(1)
  const first = await service.ok('organizationInvoices', { token: owner, query: { limit: 1 } })
  const second = await service.ok('organizationInvoices', {
    token: owner,
    query: { limit: 1, page_token: first.next_page_token },
  })
  expect([...first.items, ...second.items]).toEqual(issued.items)
  expect(second.next_page_token).toBe('')
})

const estimate = (body: unknown) => service.ok('estimateCreate', { body })

test('a cost estimate shows the price of a VM or a disk before anything is created', async () => {
  expect(await estimate({ vm: vmBody({ type: 'a100.8x' }) })).toEqual({
    items: [{ product_name: 'a100.8x', quantity: 1, unit: 'vm_hour', usd_per_hour: 11.6 }],
    usd_per_hour: 11.6,
    usd_per_month: 8468,
  })
  const disk = { name: 'd', size: '1TiB', location: 'us-east1-a' }
  expect(await estimate({ disk })).toMatchObject({ usd_per_hour: 0.13312, usd_per_month: 97.1776 })
})

test('a cost estimate has no amount where no price is set, and rejects what could not be created', async () => {
  await service.sql(`DELETE FROM prices WHERE product_name = 'a40.1x'`)
  expect(await estimate({ vm: vmBody({ type: 'a40.1x' }) })).toMatchObject({
    items: [{ usd_per_hour: null }],
    usd_per_hour: null,
    usd_per_month: null,
  })
  for (const body of [
    {},
    { vm: vmBody({ type: 'a40.9x' }) },
    { disk: { name: 'd', size: '5', location: 'us-east1-a' } },
  ])
    expect((await service.call('estimateCreate', { body })).status).toBe(400)
})

const set = (body: unknown) => service.ok('budgetSet', { token: owner, body })

test('a project has no budget until an admin sets one', async () => {
  expect(await service.ok('budgetGet')).toMatchObject({ monthly_usd: null, hard_stop: false })
  expect((await service.call('budgetSet', { body: { monthly_usd: 5 } })).status).toBe(403)
  for (const body of [{}, { monthly_usd: -1 }, { monthly_usd: '5' }, { monthly_usd: 5, currency: 'EUR' }])
    expect((await service.call('budgetSet', { token: owner, body })).status).toBe(400)
  expect(await set({ monthly_usd: 0.1 })).toMatchObject({ monthly_usd: 0.1, hard_stop: false })
  expect(await set({ monthly_usd: 0 })).toMatchObject({ monthly_usd: 0 })
  expect(await set({ monthly_usd: null })).toMatchObject({ monthly_usd: null })
})

test('a budget notifies at 50, 80 and 100 per cent once a month, even if it is checked often and by several processes', async () => {
  // A disk of 1 TiB costs 3.19488 USD a day.
  await advanceTo('2027-01-01T00:10:00Z')
  await set({ monthly_usd: 10 })
  const reached: unknown[][] = []
  for (const at of [
    '2027-01-01T12:00',
    '2027-01-02T18:00',
    '2027-01-03T18:00',
    '2027-01-04T18:00',
    '2027-01-20T00:00',
  ]) {
    await advanceTo(`${at}:00Z`)
    await Promise.all([1, 2, 3].map(() => service.server.billing.once()))
    const events = await eventsOf('budget.threshold_reached')
    reached.push(events.map(({ data }) => data.threshold_percent))
  }
  expect(reached).toEqual([[], [50], [50, 80], [50, 80, 100], [50, 80, 100]])
  await advanceTo('2027-02-20T00:00:00Z')
  expect(await eventsOf('budget.threshold_reached')).toHaveLength(6)
  const { items } = await service.ok('eventList', { query: { type: 'budget.threshold_reached' } })
  expect(items[0]).toMatchObject({ resource_type: 'project', actor: 'system', data: { monthly_usd: 10 } })
})

test('a budget can be sent back as it was read', async () => {
  await set({ monthly_usd: 12.5, hard_stop: true })
  const read = await service.ok('budgetGet')
  expect(read.spent_usd).toBeGreaterThan(0)
  expect(await set(read)).toEqual(read)
  expect(await set({ ...read, spent_usd: 0 })).toEqual(read)
  expect(
    (await service.call('budgetSet', { token: owner, body: { ...read, spent_usd: 'much' } })).status,
  ).toBe(400)
})

test('a budget without a hard stop only warns; with one, new VMs, starts, new disks and disk growth are refused, and the error names the budget', async () => {
  await set({ monthly_usd: 10 })
  expect((await service.ok('budgetGet')).spent_usd).toBeGreaterThan(10)
  const vm_id = await create()
  const stop = await service.ok('vmUpdate', { params: { vm_id }, body: { action: 'STOP' } })
  await service.ended(stop.operation.operation_id)
  const disk = { name: 'more', size: '1GiB', location: 'us-east1-a' }
  const created = await service.ok('diskCreate', { body: disk })
  await service.ended(created.operation.operation_id)
  const params = { disk_id: created.operation.metadata.id }
  await set({ monthly_usd: 10, hard_stop: true })
  const attempts = () =>
    Promise.all([
      service.call('vmCreate', { body: vmBody() }),
      service.call('vmUpdate', { params: { vm_id }, body: { action: 'START' } }),
      service.call('diskCreate', { body: { ...disk, name: 'huge', size: '10TiB' } }),
      service.call('diskUpdate', { params, body: { size: '2GiB' } }),
    ])
  for (const { status, body } of await attempts()) {
    expect(status).toBe(403)
    expect(body).toMatchObject({ code: 'quota_exceeded' })
    expect((body as unknown as { message: string }).message).toMatch(
      /quota exceeded: the monthly budget of project default \(10 USD, hard stop\) is spent.* until 2027-03-01/,
    )
  }
  // Other problems are reported first.
  for (const [body, expected] of [
    [vmBody({ type: 'a40.9x' }), 400],
    [vmBody({ name: (await service.ok('vmGet', { params: { vm_id } })).name }), 409],
  ] as const)
    expect((await service.call('vmCreate', { body })).status).toBe(expected)
  await set({ monthly_usd: 1000, hard_stop: true })
  for (const { status, body } of await attempts()) {
    expect(status).toBe(200)
    expect((await service.ended(body.operation.operation_id)).state).toBe('SUCCEEDED')
  }
})

test('an invoice without lines is listed like the others', async () => {
  const { organization_id } = service.credentials
  await service.sql(
    `INSERT INTO invoices (id, organization_id, month, state, usd_cents)
     VALUES (gen_random_uuid(), $1, '2026-01-01', 'issued', 0)`,
    [organization_id],
  )
  const { items } = await service.ok('organizationInvoices', { token: owner })
  expect(items.at(-1)).toMatchObject({ period_start: '2026-01-01T00:00:00.000Z', usd: 0, lines: [] })
})

test('the cost of a VM can be read after it was deleted, but only in its own project', async () => {
  const vm_id = await create({ name: 'short-lived' })
  await service.levers.clock.advance({ seconds: 5400 })
  const { cost_usd } = await service.ok('vmGet', { params: { vm_id } })
  expect(cost_usd).toBeGreaterThan(0)
  const { operation } = await service.ok('vmDelete', { params: { vm_id } })
  await service.ended(operation.operation_id)
  await service.levers.clock.advance({ seconds: 86_400 })
  const read = (resource_id: string) => service.call('projectResourceCost', { params: { resource_id } })
  expect((await read(vm_id)).body).toMatchObject({ resource_id: vm_id, usd: expect.closeTo(cost_usd, 2) })
  expect((await read(service.credentials.project_id)).status).toBe(404)
  const { organization_id } = service.credentials
  const other = await service.ok('projectCreate', { token: owner, body: { name: 'other', organization_id } })
  const params = { project_id: other.id, resource_id: vm_id }
  expect((await service.call('projectResourceCost', { token: owner, params })).status).toBe(404)
})
