import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
const days = { start_date: '2026-03-01', end_date: '2026-03-03' }

beforeAll(async () => {
  service = await startService(withLevers, '2026-03-01T12:00:00Z')
  resources = resourcesOf(service)
})
afterAll(() => service.close())

const usage = async (group_by?: string) =>
  (await service.ok('projectUsage', { query: { ...days, ...(group_by && { group_by }) } })).items

test('usage is kept for each resource, including deleted ones, with the last labels that it had on that day', async () => {
  await resources.newVm({ name: 'trainer', labels: { team: 'ml' }, os_disk_size: '228GiB' })
  const id = await resources.newVm({ name: 'brief', labels: { team: 'web' } })
  await service.levers.clock.advance({ to: '2026-03-01T18:00:00Z' })
  await service.ok('vmUpdate', { params: { vm_id: id }, body: { labels: { team: 'data' } } })
  await resources.succeeded(await resources.removeVm(id))
  await service.levers.clock.advance({ to: '2026-03-02T01:00:00Z' })

  const byResource = await usage('resource')
  expect(
    byResource.map((item) => [item.resource_name, item.labels, item.product_name, item.quantity]),
  ).toEqual([
    ['brief', { team: 'data' }, 'a100.1x', 6],
    ['trainer', { team: 'ml' }, 'a100.1x', 12],
    ['trainer-os', { team: 'ml' }, 'persistent-ssd', 1200],
  ])
  expect(byResource[0]!.resource_id).toBe(id)
  expect(
    (await usage('label:team')).map(({ label_value, product_name, quantity }) => [
      label_value,
      product_name,
      quantity,
    ]),
  ).toEqual([
    ['data', 'a100.1x', 6],
    ['ml', 'a100.1x', 12],
    ['ml', 'persistent-ssd', 1200],
  ])
  expect((await usage('label:none')).map(({ label_value, quantity }) => [label_value, quantity])).toEqual([
    ['', 18],
    ['', 1200],
  ])
  const total = (items: { usd: number | null }[]) => items.reduce((sum, { usd }) => sum + (usd ?? 0), 0)
  expect(total(byResource)).toBeCloseTo(total(await usage()), 6)
})

test('usage by resource is also available as CSV', async () => {
  const response = await service.request(
    'GET',
    `/v0.1/projects/${service.credentials.project_id}/usage?group_by=resource&start_date=2026-03-01`,
    {
      headers: { accept: 'text/csv' },
    },
  )
  const [head, first] = String(response.body).split('\r\n')
  expect(head).toMatch(/,usd,resource_id,resource_name,labels$/)
  expect(first).toMatch(/,brief,team=data$/)
})

test.each(['label:', 'label:Team', 'team', 'resources'])('grouping by %j is rejected', async (group_by) => {
  const response = await service.call('projectUsage', { query: { group_by } })
  expect(response).toMatchObject({ status: 400, body: { details: [{ field: 'group_by' }] } })
})

test('usage by resource can be read for at most one month at a time', async () => {
  const query = { start_date: '2026-01-01', end_date: '2026-03-03', group_by: 'resource' }
  expect((await service.call('projectUsage', { query })).status).toBe(400)
})
