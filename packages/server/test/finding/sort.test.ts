import { type Sort, sorts } from '@slipway/contract'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService()
  const resources = resourcesOf(service)
  await service.sql(`DELETE FROM prices WHERE product_name = 'l40s-48gb.1x'`)
  for (const [name, type] of [
    ['beta', 'a100.1x'],
    ['alpha', 'a40.1x'],
    ['delta', 'l40s-48gb.1x'],
    ['gamma', 'a100.2x'],
    ['Epsilon', 'a40.1x'],
  ])
    await resources.newVm({ name, type })
  for (const [name, size] of [
    ['two', '20GiB'],
    ['one', '100GiB'],
    ['six', '10GiB'],
  ])
    await resources.newDisk({ name, size })
})
afterAll(() => service.close())

/** Returns all names in an order, read in pages of one or two. */
async function namesOf(id: 'vmList' | 'diskList', sort: Sort | undefined, limit: number): Promise<string[]> {
  const names: string[] = []
  let page_token = ''
  do {
    const query = { limit, page_token, ...(sort && { sort }) }
    const page = await service.ok(id, { query })
    names.push(...page.items.map(({ name }) => name))
    page_token = page.next_page_token
  } while (page_token !== '')
  return names
}

const vmOrders: Record<Sort, string[]> = {
  created_at: ['beta', 'alpha', 'delta', 'gamma', 'Epsilon'],
  '-created_at': ['Epsilon', 'gamma', 'delta', 'alpha', 'beta'],
  name: [],
  '-name': [],
  // With equal prices the older VM comes first; VMs without a price come last.
  usd_per_hour: ['alpha', 'Epsilon', 'beta', 'gamma', 'delta'],
  '-usd_per_hour': ['gamma', 'beta', 'Epsilon', 'alpha', 'delta'],
}

test.each(sorts)('VMs are sorted by %s, with any page size', async (sort) => {
  const collated = await service.sql<{ name: string }>('SELECT name FROM vms ORDER BY name')
  const byName = collated.map(({ name }) => name)
  const expected = sort === 'name' ? byName : sort === '-name' ? byName.toReversed() : vmOrders[sort]
  for (const limit of [1, 2, 100]) expect(await namesOf('vmList', sort, limit)).toEqual(expected)
})

test.each([
  [undefined, ['six', 'one', 'two']],
  ['created_at', ['two', 'one', 'six']],
  ['name', ['one', 'six', 'two']],
  ['-name', ['two', 'six', 'one']],
  ['usd_per_hour', ['six', 'two', 'one']],
  ['-usd_per_hour', ['one', 'two', 'six']],
] as const)('disks are sorted by %s', async (sort, expected) => {
  for (const limit of [1, 100]) expect(await namesOf('diskList', sort, limit)).toEqual(expected)
})

test('sorting works together with filters', async () => {
  const query = { sort: '-name', names: 'alpha,beta,gamma', types: 'a40.1x,a100.1x' }
  const { items } = await service.ok('vmList', { query })
  expect(items.map(({ name }) => name)).toEqual(['beta', 'alpha'])
})

test('a page token of another sort order and an unknown sort order are rejected', async () => {
  const { next_page_token: page_token } = await service.ok('vmList', { query: { limit: 1, sort: 'name' } })
  for (const query of [{ page_token }, { page_token, sort: '-name' }, { sort: 'price' }]) {
    const { status, body } = await service.call('vmList', { query })
    expect([status, body]).toMatchObject([400, { code: 'invalid_argument' }])
  }
  expect((await service.call('vmList', { query: { page_token, sort: 'name' } })).status).toBe(200)
})
