import { openStream } from '@slipway/testing/event-stream.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { addKey, addOrganization, addProject, addUser, tokenOf } from '@slipway/testing/people.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService, useService } from '@slipway/testing/service.ts'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createAccessKey } from '../../src/accounts/credentials.ts'

/** Creates a tenant other than the demo's and returns the options for its calls. */
async function addTenant(service: TestService) {
  const organization_id = await addOrganization(service.database)
  const owner = await addUser(service.database, { memberOf: { [organization_id]: 'owner' } })
  const token = await tokenOf(service.database, owner)
  const project_id = await addProject(service, token, organization_id, 'small')
  const { secret } = await addKey(service, token, project_id, 'read')
  return { token: secret, params: { project_id, organization_id } }
}

/** Creates read keys of the demo's project that no request has used yet. */
async function addSecrets(service: TestService, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, async (_, i) => {
    const scope = { projectId: service.credentials.project_id, organizationId: null }
    const key = { role: 'read', createdBy: null, scope, name: `key-${i}` } as const
    return (await service.database.transaction((tx) => createAccessKey(tx, key)))!.secret
  })
  return Promise.all(keys)
}

/** Makes statements that read the table wait until the returned function is called. */
async function holdTable(service: TestService, table: string): Promise<() => Promise<void>> {
  const holder = new pg.Client({ connectionString: service.databaseUrl })
  await holder.connect()
  onTestFinished(() => holder.end())
  await holder.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
  return async () => void (await holder.query('COMMIT'))
}

test('concurrent requests are limited per organization, and requests of other organizations are still served', async () => {
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
  // Two of the requests run, and one waits.
  const refused = await Promise.race(asked)
  expect([refused.status, refused.headers.get('retry-after'), refused.body]).toEqual([
    429,
    '1',
    expect.objectContaining({ code: 'rate_limited', message: expect.stringContaining('concurrent') }),
  ])
  expect((await service.call('vmList')).status).toBe(429)
  expect((await service.call('vmList', tenant)).status).toBe(200)
  expect((await service.call('adminVmList', { token: operator_key })).status).toBe(200)
  // Long polls and streams do not count towards the limit.
  const params = { operation_id: operation.operation_id }
  expect((await service.call('operationGet', { params, query: { wait: 1 } })).status).toBe(200)
  expect((await openStream(service.url, project_id, { token: access_key })).isClosed).toBe(false)
  await release()
  expect((await Promise.all(asked)).map(({ status }) => status).sort()).toEqual([200, 200, 200, 429])

  // A request waits for at most 10 s.
  const releaseAgain = await holdTable(service, 'images')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const laterRequests = Array.from({ length: 4 }, () => service.call('imageList'))
  await Promise.race(laterRequests)
  vi.advanceTimersByTime(10_000)
  vi.useRealTimers()
  const statuses: number[] = []
  for (const each of laterRequests) each.then(({ status }) => statuses.push(status))
  await eventually(() => statuses.length === 2)
  expect(statuses).toEqual([429, 429])
  await releaseAgain()
  expect((await Promise.all(laterRequests)).map(({ status }) => status).sort()).toEqual([200, 200, 429, 429])
  expect((await service.call('vmList')).status).toBe(200)
})

test('organizations take turns for database connections, even if one of them sends many more requests', async () => {
  const service = await useService((config) => {
    config.server.role = 'api'
    config.database.poolSize = 1
  })
  const tenant = await addTenant(service)
  // Stops the clock of the process, so that callers stay cached and each request needs one connection.
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

test('all keys of an organization share one rate limit, and the keys of other organizations are still served', async () => {
  const service = await useService((config) => {
    config.limits.organizationRequestsPerSecond = 0.001
    config.limits.organizationBurst = 5
  })
  const secrets = await addSecrets(service, 3)
  const tenant = await addTenant(service)
  const responses = []
  for (let i = 0; i < 9; i++) responses.push(await service.call('vmList', { token: secrets[i % 3]! }))
  expect(responses.slice(0, 5).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect(responses.map(({ status }) => status).slice(5)).toEqual([429, 429, 429, 429])
  expect(responses[5]!.body).toMatchObject({ message: expect.stringContaining('from the organization') })
  expect(Number(responses[5]!.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(responses[5]!.headers.get('ratelimit-remaining')).toBe('0')
  // A request that is refused for another reason counts too.
  expect((await service.request('GET', '/v0.1/admin/hosts', { token: secrets[0]! })).status).toBe(429)
  expect((await service.call('vmList', tenant)).status).toBe(200)
  expect((await service.call('adminHostList', { token: service.credentials.operator_key })).status).toBe(200)
})

test('all keys of an organization share one limit for streams and one for long polls', async () => {
  const service = await useService((config) => {
    config.server.role = 'api'
    config.limits.organizationStreams = 3
  })
  const { project_id } = service.credentials
  const secrets = await addSecrets(service, 2)
  const tenant = await addTenant(service)
  const open = (token: string, id = project_id) => openStream(service.url, id, { token })
  const streams = await Promise.all([open(secrets[0]!), open(secrets[0]!), open(secrets[1]!)])
  await expect(open(secrets[1]!)).rejects.toThrow(/429.*Limit: 3 per organization/)
  expect((await open(tenant.token, tenant.params.project_id)).isClosed).toBe(false)
  streams[0]!.close()
  await eventually(() => open(secrets[1]!).catch(() => null))

  // No worker runs, so the operation stays pending.
  const { operation } = await resourcesOf(service).createDisk()
  const hangUp = new AbortController()
  onTestFinished(() => hangUp.abort())
  const url = `${service.url}/v0.1/projects/${project_id}/operations/${operation.operation_id}?wait=30`
  const waits = [...secrets, ...secrets].map((secret) =>
    fetch(url, { headers: { authorization: `Bearer ${secret}` }, signal: hangUp.signal }),
  )
  for (const wait of waits) wait.catch(() => {})
  const refused = await Promise.race(waits)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await refused.json()).toMatchObject({
    message: expect.stringContaining('Limit: 3 per organization'),
  })
})

describe('a list page', () => {
  const pageBytes = 4096
  let service: TestService
  let operationId: string
  beforeAll(async () => {
    service = await startService((config) => {
      config.limits.pageBytes = pageBytes
    })
    const { newDisk, createVm } = resourcesOf(service)
    for (let i = 0; i < 12; i++) await newDisk({ name: `disk-${i}`, description: 'd'.repeat(500) })
    const script = `#!/bin/sh\n# ${'x'.repeat(60_000)}\n`
    const { operation } = await createVm({ startup_script: script, shutdown_script: script })
    operationId = operation.operation_id
    await service.ended(operationId)
  })
  afterAll(() => service.close())

  test.each([
    ['diskList', { sort: 'name' }],
    ['diskList', {}],
    ['operationList', {}],
    ['eventList', {}],
  ] as const)(
    'ends at the byte limit, and the pages of %s %j together contain every item once',
    async (id, query) => {
      const sizes: number[] = []
      const ids: string[] = []
      for (let token = ''; ; ) {
        const { body } = await service.call(id, { query: { ...query, limit: 500, page_token: token } })
        sizes.push(body.items.length)
        ids.push(...body.items.map((item) => JSON.stringify(item)))
        expect(Buffer.byteLength(JSON.stringify(body.items))).toBeLessThanOrEqual(
          pageBytes + body.items.length + 2,
        )
        token = body.next_page_token
        if (token === '') break
      }
      expect(sizes.length).toBeGreaterThan(2)
      expect(Math.min(...sizes)).toBeGreaterThan(0)
      expect(new Set(ids).size).toBe(ids.length)
      const rows = {
        diskList: 'disks',
        operationList: 'operations',
        eventList: 'events_written WHERE project_id IS NOT NULL',
      }[id]
      expect(await service.sql(`SELECT count(*)::int AS n FROM ${rows}`)).toEqual([{ n: ids.length }])
    },
  )

  test('of operations contains digests of scripts; a single operation contains the text, but never for operators', async () => {
    const isThis = (item: { operation_id: string }) => item.operation_id === operationId
    const listed = (await service.ok('vmOperationList')).items.find(isThis)!
    const digest = expect.stringMatching(/^sha256:[0-9a-f]{64}$/)
    const scripts = { startup_script: digest, shutdown_script: digest }
    expect(listed.metadata.request).toMatchObject({ type: 'a100.1x', ...scripts })
    const token = service.credentials.operator_key
    const shown = (await service.ok('adminOperationList', { token, query: { limit: 1 } })).items.find(isThis)!
    expect(shown.metadata.request).toEqual(listed.metadata.request)
    const one = await service.ok('vmOperationGet', { params: { operation_id: operationId } })
    expect(one.metadata.request).toMatchObject({
      ...listed.metadata.request,
      startup_script: expect.stringMatching(/^#!/),
      shutdown_script: expect.stringMatching(/^#!/),
    })
  })

  test('contains at least one item, even if the item is larger than the limit', async () => {
    const [disk] = (await service.ok('diskList', { query: { limit: 1 } })).items
    const labels = Object.fromEntries(
      Array.from({ length: 32 }, (_, i) => [`${'k'.repeat(60)}${i}`, 'v'.repeat(63)]),
    )
    const { operation } = await service.ok('diskUpdate', { params: { disk_id: disk!.id }, body: { labels } })
    await service.ended(operation.operation_id)
    const { items, next_page_token } = await service.ok('diskList')
    expect(items.map(({ id }) => id)).toEqual([disk!.id])
    expect((await service.ok('diskList', { query: { page_token: next_page_token } })).items).not.toEqual([])
  })
})
