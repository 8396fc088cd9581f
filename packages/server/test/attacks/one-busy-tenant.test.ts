import { openStream } from '@slipway/testing/event-stream.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { addKey, addOrganization, addProject, addUser, tokenOf } from '@slipway/testing/people.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { type TestService, useService } from '@slipway/testing/service.ts'
import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'

/** A tenant beside the demo's: the options for its calls. */
async function addTenant(service: TestService) {
  const organization_id = await addOrganization(service.database)
  const owner = await addUser(service.database, { memberOf: { [organization_id]: 'owner' } })
  const token = await tokenOf(service.database, owner)
  const project_id = await addProject(service, token, organization_id, 'small')
  const { secret } = await addKey(service, token, project_id, 'read')
  return { token: secret, params: { project_id, organization_id } }
}

/** Statements that read the table wait until the returned function is called. */
async function holdTable(service: TestService, table: string): Promise<() => Promise<void>> {
  const holder = new pg.Client({ connectionString: service.databaseUrl })
  await holder.connect()
  onTestFinished(() => holder.end())
  await holder.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
  return async () => void (await holder.query('COMMIT'))
}

test('an organization has a limit of requests at once, and the requests of others are served meanwhile', async () => {
  const service = await useService((config) => {
    config.limits.organizationInFlight = 2
    config.limits.organizationQueue = 1
  })
  const { project_id, access_key, operator_key } = service.credentials
  const tenant = await addTenant(service)
  const { operation } = await resourcesOf(service).createDisk()
  await service.ended(operation.operation_id)
  const release = await holdTable(service, 'images')
  const asked = Array.from({ length: 4 }, () => service.call('imageList'))
  // Two run, one waits.
  const refused = await Promise.race(asked)
  expect([refused.status, refused.headers.get('retry-after'), refused.body]).toEqual([
    429,
    '1',
    expect.objectContaining({ code: 'rate_limited', message: expect.stringContaining('at once') }),
  ])
  expect((await service.call('vmList')).status).toBe(429)
  expect((await service.call('vmList', tenant)).status).toBe(200)
  expect((await service.call('adminVmList', { token: operator_key })).status).toBe(200)
  // Waits and streams do not count.
  const params = { operation_id: operation.operation_id }
  expect((await service.call('operationGet', { params, query: { wait: 1 } })).status).toBe(200)
  expect((await openStream(service.url, project_id, { token: access_key })).isClosed).toBe(false)
  await release()
  expect((await Promise.all(asked)).map(({ status }) => status).sort()).toEqual([200, 200, 200, 429])

  // A request waits for at most 10 s.
  const releaseAgain = await holdTable(service, 'images')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const askedAgain = Array.from({ length: 4 }, () => service.call('imageList'))
  await Promise.race(askedAgain)
  vi.advanceTimersByTime(10_000)
  vi.useRealTimers()
  const statuses: number[] = []
  for (const each of askedAgain) each.then(({ status }) => statuses.push(status))
  await eventually(() => statuses.length === 2)
  expect(statuses).toEqual([429, 429])
  await releaseAgain()
  expect((await Promise.all(askedAgain)).map(({ status }) => status).sort()).toEqual([200, 200, 429, 429])
  expect((await service.call('vmList')).status).toBe(200)
})

test('organizations get database connections in turn, however many requests one of them sends', async () => {
  const service = await useService((config) => {
    config.server.role = 'api'
    config.database.poolSize = 1
  })
  const tenant = await addTenant(service)
  // Callers stay cached, so that each request needs one connection.
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
  onTestFinished(() => clock.mockRestore())
  await service.ok('diskList')
  await service.ok('diskList', tenant)
  const release = await holdTable(service, 'disks')
  const served: string[] = []
  const list = async (name: string, options: Parameters<typeof service.ok>[1]) => {
    await service.ok('diskList', options)
    served.push(name)
  }
  const waiting = (count: number) => eventually(() => service.database.connections.waitingCount >= count)
  const many = Array.from({ length: 12 }, (_, i) => list('many', { query: { limit: i + 1 } }))
  await waiting(11)
  const one = list('one', tenant)
  await waiting(12)
  await release()
  await Promise.all([...many, one])
  expect(served).toHaveLength(13)
  expect(served.indexOf('one')).toBeLessThan(6)
})
