import { freshName } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

test('a subnet can be renamed, and its name is unique in the project', async () => {
  const { items } = await service.ok('subnetList')
  const [subnet, other] = items
  const params = { subnet_id: subnet!.id }
  const rename = (name: string) => service.call('subnetUpdate', { params, body: { name } })
  const name = freshName('subnet')
  expect(await rename(name)).toMatchObject({ status: 200, body: { ...subnet, name } })
  expect(await service.ok('subnetGet', { params })).toEqual({ ...subnet, name })
  expect(await rename(other!.name)).toMatchObject({ status: 409, body: { code: 'already_exists' } })
  expect((await rename('Not A Name')).status).toBe(400)
  const foreign = { subnet_id: crypto.randomUUID() }
  expect((await service.call('subnetUpdate', { params: foreign, body: { name } })).status).toBe(404)
  const events = await service.sql(
    `SELECT data FROM events_written WHERE type = 'subnet.updated' AND resource_id = $1`,
    [subnet!.id],
  )
  expect(events).toEqual([{ data: { name } }])
})
