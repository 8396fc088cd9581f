import type { RouteId } from '@slipway/contract'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
/** Ids by the names that the tests use. */
const ids: Record<string, string> = {}

beforeAll(async () => {
  service = await startService()
  const { newVm, newDisk, attach, act, ended, succeeded, createVm } = resourcesOf(service)
  for (const name of ['ada', 'bob', 'eve']) ids[name] = await newVm({ name })
  for (const name of ['logs', 'data']) ids[name] = await newDisk({ name })
  await succeeded(await attach(ids.ada!, ids.data!))
  await succeeded(await act(ids.bob!, { action: 'STOP' }))
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject' })
  expect((await ended(await createVm({ name: 'max' }))).state).toBe('FAILED')
})
afterAll(() => service.close())

/** Returns the whole list, read in pages of two. */
async function all<Item>(id: RouteId, query: Record<string, string | boolean>, token?: string) {
  const items: Item[] = []
  for (let page_token = ''; ; ) {
    const response = (await service.ok(id, {
      query: { ...query, limit: 2, ...(page_token && { page_token }) },
      ...(token && { token }),
    })) as { items: Item[]; next_page_token: string }
    items.push(...response.items)
    page_token = response.next_page_token
    if (page_token === '') return items
  }
}

const named = (text: string) => text.replaceAll(/<(\w+)>/g, (_, name) => ids[name]!)

test.each([
  ['vmList', {}, ['eve', 'bob', 'ada']],
  ['vmList', { names: 'ada,eve,nobody' }, ['eve', 'ada']],
  ['vmList', { ids: '<bob>,<ada>' }, ['bob', 'ada']],
  ['vmList', { ids: '<bob>,<ada>', names: 'ada' }, ['ada']],
  ['vmList', { names: 'ada,bob', states: 'STATE_SHUTOFF' }, ['bob']],
  ['vmList', { states: 'STATE_RUNNING', types: 'a100.1x', locations: 'us-east1-a' }, ['eve', 'ada']],
  ['diskList', {}, ['data', 'logs']],
  ['diskList', { attached_to: '<ada>,<bob>' }, ['data']],
  ['diskList', { attached_to: '<ada>', names: 'logs' }, []],
  ['diskList', { ids: '<logs>,<data>', types: 'persistent-ssd' }, ['data', 'logs']],
] as const)('%s %j returns the items that match the filters, newest first', async (id, query, names) => {
  const given = Object.fromEntries(Object.entries(query).map(([key, value]) => [key, named(value)]))
  expect((await all<{ name: string }>(id, given)).map(({ name }) => name)).toEqual(names)
})

test.each([
  [{ resource_id: '<ada>' }, ['ATTACH', 'CREATE']],
  [{ resource_id: '<ada>', state: 'FAILED' }, []],
  [{ state: 'FAILED' }, ['CREATE']],
  [{ state: 'IN_PROGRESS' }, []],
  [{ resource_id: '<bob>', state: 'SUCCEEDED' }, ['STOP', 'CREATE']],
])('operations %j returns those that match the filters, newest first', async (query, names) => {
  const given = Object.fromEntries(Object.entries(query).map(([key, value]) => [key, named(value)]))
  const items = await all<{ metadata: { operation_name: string } }>('operationList', given)
  expect(items.map(({ metadata }) => metadata.operation_name)).toEqual(names)
})

test('operators list operations and events of all projects with the same filters', async () => {
  const token = service.credentials.operator_key
  const operations = (query: Record<string, string | boolean>) => all('adminOperationList', query, token)
  expect(await operations({})).toHaveLength(8)
  expect(await operations({ state: 'FAILED' })).toHaveLength(1)
  expect(await operations({ state: 'FAILED', stuck: false })).toHaveLength(1)
  expect(await operations({ stuck: true })).toEqual([])
  const events = (query: Record<string, string>) => all<{ type: string }>('adminEventList', query, token)
  const ofAda = await events({ resource_id: ids.ada! })
  expect(ofAda.length).toBeGreaterThan(3)
  const succeeded = ofAda.filter(({ type }) => type === 'operation.succeeded')
  expect(await events({ resource_id: ids.ada!, type: 'operation.succeeded' })).toEqual(succeeded)
  expect((await events({ type: 'operation.failed' })).map(({ type }) => type)).toEqual(['operation.failed'])
})

test('a VM has the same record alone and in a list, with and without data disks', async () => {
  const { items } = await service.ok('vmList')
  expect(items.map(({ disks }) => disks.map(({ name }) => name))).toEqual([
    ['eve-os'],
    ['bob-os'],
    ['ada-os', 'data'],
  ])
  for (const item of items)
    expect(await service.ok('vmGet', { params: { vm_id: item.id } })).toEqual({
      ...item,
      cost_usd: expect.any(Number),
    })
})
