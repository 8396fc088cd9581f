import { createDatabase } from '@slipway/testing/database.ts'
import { clockOf } from '@slipway/testing/postgres/clock.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { sumUsd } from '../../src/domain/charges.ts'
import { uuid } from '../../src/domain/ids.ts'
import { usdOfMs } from '../../src/domain/money.ts'
import { Database } from '../../src/postgres/database.ts'
import { findBudgets } from '../../src/store/billing/budgets.ts'
import { setPrices } from '../../src/store/billing/prices.ts'
import { closeUsage, openUsage } from '../../src/store/billing/usage.ts'
import { currentRate, listMonth } from '../../src/store/billing/usage-days.ts'
import { insertOrganization } from '../../src/store/identity/organizations.ts'
import { insertProject } from '../../src/store/identity/projects.ts'

let store: Awaited<ReturnType<typeof createDatabase>>
let database: Database
const projects = [uuid(), uuid()]
beforeAll(async () => {
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: 8 })
  const organizationId = uuid()
  await database.transaction(async (tx) => {
    await insertOrganization(tx, organizationId, 'Harbour Labs')
    for (const [index, id] of projects.entries())
      await insertProject(tx, { id, organizationId, name: `p${index}`, labels: {} })
  })
})
afterAll(async () => {
  await database.close()
  await store.drop()
})
beforeEach(async () => {
  await database.query({ text: 'TRUNCATE usage_intervals, project_spending, prices' })
  await clock.reset()
})

const clock = clockOf((text, values) => database.query({ text, values }))
const freeze = (ms: number) => clock.freeze(new Date(ms).toISOString())
const products = ['a100.1x', 'persistent-ssd'] as const
const openMeter = (projectId: string, resourceId: string, productName: string, quantity: number) =>
  database.transaction((tx) =>
    openUsage(tx, {
      projectId,
      location: 'us-east1-a',
      resourceType: productName === 'a100.1x' ? 'vm' : 'disk',
      resourceId,
      resourceName: '',
      labels: {},
      productName,
      quantity,
    }),
  )
const closeMeter = (resourceId: string) => database.transaction((tx) => closeUsage(tx, resourceId))
const changePrice = (product_name: string, usd: string) =>
  database.transaction((tx) =>
    setPrices(tx, [{ product_name, unit: product_name === 'a100.1x' ? 'vm_hour' : 'gb_hour', usd }]),
  )

/** Checks that the running total of each project equals the sum of its intervals exactly. */
async function expectAgreement(): Promise<void> {
  for (const projectId of projects) {
    const { spent_usd_ms } = (await findBudgets(database, [projectId]))[0]!
    expect(usdOfMs(spent_usd_ms)).toEqual(sumUsd(await listMonth(database, [projectId])))
    const { rows } = await database.query({
      text: 'SELECT trim_scale(usd_per_hour)::text AS rate FROM project_spending WHERE project_id = $1',
      values: [projectId],
    })
    const { usd_per_hour } = await currentRate(database, [projectId])
    expect(Number(rows[0]?.rate ?? 0)).toBe(Number(usd_per_hour))
  }
}

type Step =
  | { kind: 'open'; project: number; product: number; quantity: number }
  | { kind: 'close' | 'resize'; which: number }
  | { kind: 'price'; product: number; e8: number }
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('open' as const),
      project: fc.nat(1),
      product: fc.nat(1),
      quantity: fc.integer({ min: 1, max: 10_240 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('close', 'resize'), which: fc.nat(9) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('price' as const),
      product: fc.nat(1),
      e8: fc.integer({ min: 0, max: 300_000_000 }),
    }),
  },
)
/** The shortest pause, a pause of up to a day, or one of up to 45 days. */
const pauseMs = fc.oneof(
  fc.constant(1),
  fc.integer({ min: 1, max: 86_400_000 }),
  fc.integer({ min: 1, max: 45 * 86_400_000 }),
)

test('the running total of a project equals the sum of its intervals when meters open, close or grow and prices change', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(pauseMs, step), { minLength: 1, maxLength: 14 }), async (steps) => {
      await database.query({ text: 'TRUNCATE usage_intervals, project_spending, prices' })
      const open: { id: string; project: number; product: number; quantity: number }[] = []
      let at = Date.parse('2027-01-30T22:00:00Z')
      for (const [pause, action] of steps) {
        at += pause
        await freeze(at)
        if (action.kind === 'open') {
          const id = uuid()
          open.push({ id, ...action })
          await openMeter(projects[action.project]!, id, products[action.product]!, action.quantity)
        } else if (action.kind === 'price') {
          await changePrice(products[action.product]!, (action.e8 / 100_000_000).toFixed(8))
        } else if (open.length > 0) {
          const [meter] = open.splice(action.which % open.length, 1)
          const { id, project, product, quantity } = meter!
          if (action.kind === 'close') await closeMeter(id)
          else
            await database.transaction(async (tx) => {
              await closeUsage(tx, id)
              await openUsage(tx, {
                projectId: projects[project]!,
                location: 'us-east1-a',
                resourceType: product === 0 ? 'vm' : 'disk',
                resourceId: id,
                resourceName: '',
                labels: {},
                productName: products[product]!,
                quantity: quantity + 1,
              })
              open.push({ ...meter!, quantity: quantity + 1 })
            })
        }
        await expectAgreement()
      }
      await freeze(at + 40 * 86_400_000)
      await expectAgreement()
    }),
    { numRuns: 25 },
  )
})

test('the running total of a project is exact when meters and prices change at the same time', async () => {
  await changePrice('a100.1x', '1.45')
  const ids = Array.from({ length: 40 }, () => uuid())
  await Promise.all([
    ...ids.map(async (id, index) => {
      await openMeter(projects[index % 2]!, id, 'a100.1x', 1)
      if (index % 3 === 0) await closeMeter(id)
    }),
    ...['1.5', '0.7', '2.25'].map((usd) => changePrice('a100.1x', usd)),
  ])
  const { rows } = await database.query({ text: "SELECT slipway_now() + interval '1 hour' AS later" })
  await freeze(rows[0].later.getTime())
  await expectAgreement()
})
