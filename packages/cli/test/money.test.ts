import { routes } from '@slipway/contract'
import { answer, scriptedServer } from '@slipway/testing/scripted-server.ts'
import Value from 'typebox/value'
import { afterAll, afterEach, expect, test } from 'vitest'
import { freshHome } from './support/cli.ts'
import { goldenFile, transcript } from './support/golden.ts'

const { slipway, remove } = freshHome()
afterAll(remove)
let close = async () => {}
afterEach(() => close())

const project = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'
const day = (date: string, product_name: string, quantity: number, usd: number | null) => ({
  date,
  project_id: project,
  location: 'us-east1-a',
  resource_type: product_name.includes('.') ? 'vm' : 'disk',
  product_name,
  quantity,
  unit: product_name.includes('.') ? 'vm_hour' : 'gb_hour',
  usd,
})
// Fixed figures, because those of a real month depend on the day.
const usage = {
  items: [
    day('2026-10-01', 'a100.1x', 24, 34.8),
    day('2026-10-01', 'persistent-ssd', 12_000, 1.56),
    day('2026-10-02', 'a100.1x', 12, 17.4),
    day('2026-10-03', 'a100.8x', 3.25, 37.7),
    day('2026-10-03', 'l40s-48gb.1x', 5, null),
  ],
  updated_at: '2026-10-04T00:05:00.000Z',
}
const costs = {
  usd_per_hour: 13.05,
  today_usd: 21.6,
  last_month_usd: 512.4,
  month_to_date_usd: 1234.5,
  forecast_usd: 4321.09,
  by_product: [
    { product_name: 'a100.8x', usd: 1000 },
    { product_name: 'a100.1x', usd: 234.4 },
    { product_name: 'persistent-ssd', usd: 0.1 },
  ],
  as_of: '2026-10-04T00:05:00.000Z',
}

async function golden(name: string, reply: object, ...lines: string[][]) {
  const server = await scriptedServer(answer(200, reply))
  close = server.close
  const env = { SLIPWAY_API_URL: server.url, SLIPWAY_ACCESS_KEY: 'key', SLIPWAY_PROJECT: project }
  const texts: string[] = []
  for (const words of lines) texts.push(transcript(words, await slipway(words, { env })))
  await expect(`${texts.join('\n\n')}\n`).toMatchFileSnapshot(goldenFile(name))
  return server.requests
}

test('the test figures of usage and cost match the response schema', () => {
  expect([...Value.Errors(routes.projectUsage.response, usage)]).toEqual([])
  expect([...Value.Errors(routes.projectCosts.response, costs)]).toEqual([])
})

test('usage is a table by product and a chart by day', async () => {
  const requests = await golden(
    'usage.txt',
    usage,
    ['usage', '--month', '2026-10'],
    ['usage', '--month', '2026-13'],
  )
  expect(requests[0]?.path).toBe(`/v0.1/projects/${project}/usage?start_date=2026-10-01&end_date=2026-10-31`)
})

test('cost shows the current price per hour, the month to date, the forecast and the products', async () => {
  await golden('cost.txt', costs, ['cost'], ['cost', '-o', 'columns=usd_per_hour,forecast_usd'])
})

test('suggestions lists unused resources and what they cost', async () => {
  const found = {
    items: [
      {
        ...{ kind: 'idle_vm', resource_id: project, name: 'train-7', usd_per_month: 1058.5 },
        evidence: { highest_gpu_utilization: 0.5, hours: 24 },
        message: 'The GPUs of train-7 were below 5% for 24 hours. Stop it, or give it an idle policy.',
      },
      {
        ...{ kind: 'detached_disk', resource_id: project, name: 'old-data', usd_per_month: 47.45 },
        evidence: { size_gib: 500 },
        message: 'old-data (500 GiB) is not attached to a VM. Delete it if you no longer need its data.',
      },
    ],
  }
  expect([...Value.Errors(routes.suggestionList.response, found)]).toEqual([])
  await golden('suggestions.txt', found, ['suggestions'])
})

const request = {
  ...{ id: project, state: 'waiting', on_available: 'hold', request: { start_vm_id: project } },
  ...{ gpus_wanted: 1, gpus_held: 0, position: null as number | null, blocked_by: '' },
  estimate: {
    ...{ earliest_at: '', likely_at: '', latest_at: '', basis: 'none', hit_rate: null, computed_at: '' },
  },
  ...{ location: '', resource_id: '', operation_id: '', error: null, labels: {} },
  ...{ until: '2026-11-06T09:01:30.000Z', held_until: '' },
  ...{ created_at: '2026-10-30T09:01:30.000Z', updated_at: '2026-10-30T09:01:30.000Z' },
}

test('the test request matches the response schema', () => {
  expect([...Value.Errors(routes.capacityRequestCreate.response, request)]).toEqual([])
})

test.each([
  ['a position in the queue', { position: 3 }, 'The request is at position 3 in the queue.'],
  ['a position over 100', { position: null }, 'The request is at a position over 100 in the queue.'],
  ['GPUs already', { state: 'held' }, 'The request no longer waits: its state is held.'],
])('queue start says that the new request has %s', async (_, reply, note) => {
  const server = await scriptedServer(answer(200, { ...request, ...reply }))
  close = server.close
  const env = { SLIPWAY_API_URL: server.url, SLIPWAY_ACCESS_KEY: 'key', SLIPWAY_PROJECT: project }
  const { code, stderr } = await slipway(['queue', 'start', project], { env, printsNotes: true })
  expect(code).toBe(0)
  expect(stderr).toContain(note)
})

test('a column of any field in dollars is formatted as money', async () => {
  const offer = { type: 'a40.1x', location: 'us-east1-a', usd_per_hour: 0.9, quantity: 3 }
  const server = await scriptedServer(answer(200, { items: [offer, { ...offer, usd_per_hour: null }] }))
  close = server.close
  const env = { SLIPWAY_API_URL: server.url, SLIPWAY_ACCESS_KEY: 'key', SLIPWAY_PROJECT: project }
  const words = ['offers', '-o', 'columns=type,usd_per_hour,quantity', '--no-header']
  expect((await slipway(words, { env })).stdout).toBe('a40.1x  $0.90  3\na40.1x  -      3\n')
})
