import { startService, type TestService } from '@slipway/testing/service.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'

// The time zone of a host, with days of 23 and 25 hours, must not affect any number.
process.env.TZ = 'America/New_York'
afterAll(() => {
  delete process.env.TZ
})

let service: TestService
test('these tests run in a time zone with daylight saving', () => {
  const offsetHours = ['2026-03-07T12:00Z', '2026-03-09T12:00Z'].map(
    (at) => new Date(at).getTimezoneOffset() / 60,
  )
  expect(offsetHours).toEqual([5, 4])
})
beforeAll(async () => {
  service = await startService((config) => {
    config.server.role = 'api'
  })
})
afterAll(() => service.close())
beforeEach(() =>
  service.sql('TRUNCATE usage_intervals, usage_days, usage_days_closed, invoices, invoice_lines, prices'),
)

interface History {
  product: 'a100.1x' | 'persistent-ssd'
  quantity: number
  startMs: number
  /** Null while the interval is open. */
  lengthMs: number | null
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const write = ({ product, quantity, startMs, lengthMs }: History, location = 'us-east1-a') =>
  service.sql(
    `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
     VALUES ($1, $2, $3, $4, $5, $6, tstzrange($7, $8))`,
    [
      service.credentials.project_id,
      location,
      product === 'a100.1x' ? 'vm' : 'disk',
      uuid(),
      product,
      quantity,
      new Date(startMs).toISOString(),
      lengthMs === null ? null : new Date(startMs + lengthMs).toISOString(),
    ],
  )
const price = (product: string, at: string, usd: string) =>
  service.sql('INSERT INTO prices (product_name, valid_from, unit, usd) VALUES ($1, $2, $3, $4)', [
    product,
    at,
    product === 'a100.1x' ? 'vm_hour' : 'gb_hour',
    usd,
  ])
const rows = () =>
  service.sql<{ day: string; quantity_ms: string; cost_usd_ms: string | null }>(
    `SELECT day::text, project_id, location, resource_type, product_name, quantity_ms::text, cost_usd_ms::text
     FROM usage_days ORDER BY day, location, product_name`,
  )
/** Each test goes back in time, so the tests run the roll-up themselves. */
const billAt = async (at: string) => {
  await service.clock.freeze(at)
  await service.server.billing.once()
}
const utc = (text: string) => Date.parse(`${text}Z`)

test('usage is written for whole UTC days after the time of the roll-up, and not before', async () => {
  await write({ product: 'a100.1x', quantity: 1, startMs: utc('2026-03-07T18:00'), lengthMs: null })
  await price('a100.1x', '2026-01-01', '1.45')
  await billAt('2026-03-08T00:04:59.999Z')
  expect((await service.ok('projectUsage')).items).toEqual([])
  await billAt('2026-03-08T00:05:00Z')
  const response = await service.ok('projectUsage')
  expect(response).toEqual({
    items: [
      {
        date: '2026-03-07',
        project_id: service.credentials.project_id,
        location: 'us-east1-a',
        resource_type: 'vm',
        product_name: 'a100.1x',
        quantity: 6,
        unit: 'vm_hour',
        usd: 8.7,
      },
    ],
    updated_at: '2026-03-08T00:05:00.000Z',
  })
})

test('usage is the same whether written daily, twice, three days late or by two processes at the same time', async () => {
  await price('a100.1x', '2026-01-01', '1.45')
  await write({ product: 'a100.1x', quantity: 1, startMs: utc('2026-03-07T18:00'), lengthMs: 2.5 * dayMs })
  await write({
    product: 'persistent-ssd',
    quantity: 100,
    startMs: utc('2026-03-07T23:59:59.999'),
    lengthMs: null,
  })
  for (const day of ['08', '09', '10', '11']) {
    await billAt(`2026-03-${day}T00:05:00Z`)
    await service.server.billing.once()
  }
  const daily = await rows()
  expect(daily).toHaveLength(8)

  await service.sql('TRUNCATE usage_days, usage_days_closed')
  const other = await service.another()
  await Promise.all([1, 2, 3].flatMap(() => [service.server, other].map((each) => each.billing.once())))
  expect(await rows()).toEqual(daily)
  expect(await service.sql('SELECT day::text FROM usage_days_closed ORDER BY day')).toHaveLength(4)
})

test('usage is split where a price changes, and has no price where none was set', async () => {
  await write({ product: 'a100.1x', quantity: 1, startMs: utc('2026-03-07T00:00'), lengthMs: dayMs })
  await write({
    product: 'persistent-ssd',
    quantity: 3,
    startMs: utc('2026-03-07T00:00'),
    lengthMs: hourMs,
  })
  await price('a100.1x', '2026-03-07T06:00:00Z', '1')
  await price('a100.1x', '2026-03-07T18:00:00.001Z', '0.5')
  await billAt('2026-03-08T00:05:00Z')
  const { items } = await service.ok('projectUsage')
  expect(items.map(({ product_name, quantity, usd }) => [product_name, quantity, usd])).toEqual([
    ['a100.1x', 24, 15],
    ['persistent-ssd', 3, null],
  ])
  const [vm] = await rows()
  expect(vm!.cost_usd_ms).toBe(String(43_200_001 + 21_599_999 * 0.5))
})

test('disk usage costs exactly 0.00013 USD per GB and hour', async () => {
  await price('persistent-ssd', '2026-01-01', '0.00013')
  await write({
    product: 'persistent-ssd',
    quantity: 1024,
    startMs: utc('2026-03-07T05:00'),
    lengthMs: hourMs,
  })
  await billAt('2026-03-08T00:05:00Z')
  const { items } = await service.ok('projectUsage')
  expect(items).toMatchObject([{ quantity: 1024, unit: 'gb_hour', usd: 0.13312 }])
})

test('usage can be filtered by day, location and kind, and is available as CSV', async () => {
  await price('a100.1x', '2026-01-01', '1.45')
  for (const location of ['us-east1-a', 'eu-north1-a'])
    await write(
      { product: 'a100.1x', quantity: 1, startMs: utc('2026-03-05T00:00'), lengthMs: 3 * dayMs },
      location,
    )
  await write({ product: 'persistent-ssd', quantity: 5, startMs: utc('2026-03-06T00:00'), lengthMs: dayMs })
  await billAt('2026-03-09T00:05:00Z')
  const count = async (query: Record<string, string>) =>
    (await service.ok('projectUsage', { query })).items.length
  expect(await count({})).toBe(7)
  expect(await count({ start_date: '2026-03-06', end_date: '2026-03-06' })).toBe(3)
  expect(await count({ start_date: '2026-03-07' })).toBe(2)
  expect(await count({ location: 'eu-north1-a' })).toBe(3)
  expect(await count({ resource_type: 'disk' })).toBe(1)
  for (const query of [
    { location: 'nowhere' },
    { start_date: '2026-02-30' },
    { start_date: '9999-12-31' },
    { end_date: '0000-01-01' },
    { start_date: '2026-03-07', end_date: '2026-03-06' },
    { start_date: '2020-01-01', end_date: '2026-01-01' },
    { resource_type: 'network' },
    { location: 'nowhere' },
  ])
    expect((await service.call('projectUsage', { query })).status).toBe(400)

  const headers = { accept: 'text/csv' }
  const csv = await service.call('projectUsage', { query: { end_date: '2026-03-05' }, headers })
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  const project = service.credentials.project_id
  expect(String(csv.body).split('\r\n')).toEqual([
    'date,project_id,location,resource_type,product_name,quantity,unit,usd',
    `2026-03-05,${project},eu-north1-a,vm,a100.1x,24,vm_hour,34.8`,
    `2026-03-05,${project},us-east1-a,vm,a100.1x,24,vm_hour,34.8`,
    '',
  ])
  const either = await service.call('projectUsage', {
    headers: { accept: 'application/json, text/csv;q=0.5' },
  })
  expect(either.headers.get('content-type')).toContain('application/json')
})

// The histories begin before a leap day and before both daylight saving changes in the time zone of this process.
const starts = ['2028-02-26T00:00', '2026-03-06T00:00', '2026-10-30T00:00'].map(utc)
const history = fc.record({
  product: fc.constantFrom('a100.1x' as const, 'persistent-ssd' as const),
  quantity: fc.integer({ min: 1, max: 10_240 }),
  startMs: fc.integer({ min: 0, max: 5 * dayMs }),
  lengthMs: fc.option(fc.integer({ min: 1, max: 4 * dayMs }), { freq: 5 }),
})

test('the usage of random histories adds up to the intervals exactly, day by day', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...starts),
      fc.array(history, { minLength: 1, maxLength: 12 }),
      async (base, relative) => {
        await service.sql('TRUNCATE usage_intervals, usage_days, usage_days_closed')
        const histories = relative.map((each) => ({ ...each, startMs: base + each.startMs }))
        for (const each of histories) await write(each)
        const end = base + 7 * dayMs
        await billAt(new Date(end + 10 * 60_000).toISOString())
        const written = await service.sql<{ day: string; product_name: string; quantity_ms: string }>(
          'SELECT day::text, product_name, quantity_ms::text FROM usage_days ORDER BY day, product_name',
        )
        const expected = new Map<string, bigint>()
        for (const { product, quantity, startMs, lengthMs } of histories)
          for (let from = startMs; from < Math.min(end, startMs + (lengthMs ?? Infinity)); ) {
            const midnight = (Math.floor(from / dayMs) + 1) * dayMs
            const to = Math.min(midnight, startMs + (lengthMs ?? Infinity))
            const key = `${new Date(from).toISOString().slice(0, 10)} ${product}`
            expected.set(key, (expected.get(key) ?? 0n) + BigInt(to - from) * BigInt(quantity))
            from = to
          }
        expect(
          new Map(written.map((row) => [`${row.day} ${row.product_name}`, BigInt(row.quantity_ms)])),
        ).toEqual(new Map([...expected].sort()))
      },
    ),
    { numRuns: 25 },
  )
})
