import { type DevBody, type DevClock, type DevResponse, type DevRouteId, devRoutes } from '@slipway/contract'
import { checkInvariants } from '@slipway/testing/invariants.ts'
import { ownerToken } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService((config) => {
    config.isDev = true
  })
})
afterAll(() => service?.close())
beforeEach(() => lever('reset'))

interface LeverOptions<Id extends DevRouteId> {
  body?: DevBody<Id>
  id?: string
  query?: string
  token?: string | null
  headers?: Record<string, string>
}

async function lever<Id extends DevRouteId>(id: Id, options: LeverOptions<Id> = {}) {
  const { method, path } = devRoutes[id]
  const { body, token = service.credentials.operator_key, headers = {} } = options
  const url = `${service.url}${path.replace(/\{\w+\}/, options.id ?? '')}${options.query ?? ''}`
  const response = await fetch(url, {
    method,
    headers: {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as DevResponse<Id> & { message?: string } }
}

const clock = async () => (await lever('clockGet')).body

async function createVm(name: string, more: object = {}) {
  const created = await service.ok('vmCreate', { body: vmBody({ name, ...more }) })
  return service.ended(created.operation.operation_id)
}

test('without --dev the levers do not exist and their code is not loaded', async () => {
  const plain = await service.another((config) => {
    config.isDev = false
  })
  const response = await fetch(`${plain.url}/_dev/clock`, {
    headers: { authorization: `Bearer ${service.credentials.operator_key}` },
  })
  expect(response.status).toBe(404)
  await plain.close()
})

test('only an operator on this machine can use the levers', async () => {
  expect((await lever('clockGet')).status).toBe(200)
  expect((await lever('clockGet', { token: null })).status).toBe(401)
  expect((await lever('clockGet', { token: service.credentials.access_key })).status).toBe(403)
  expect((await lever('clockGet', { headers: { origin: 'https://evil.example' } })).status).toBe(403)
})

test('a client freezes time, fills a location, fails the third boot, reaches the next month, and reads the invoice', async () => {
  await lever('clockSet', { body: { mode: 'frozen', now: nextMonth(await clock(), 10) } })
  const { now } = await clock()
  expect((await clock()).now).toBe(now)

  await lever('capacitySet', { body: { type: 'a100.1x', location: 'us-east1-a', free: 3 } })
  await lever('faultCreate', { body: { on: 'vm-create', step: 'boot', effect: 'fail', after: 2, times: 1 } })
  const states = []
  for (const name of ['one', 'two', 'three']) states.push((await createVm(name, { type: 'a100.1x' })).state)
  expect(states).toEqual(['SUCCEEDED', 'SUCCEEDED', 'FAILED'])

  await lever('capacitySet', { body: { type: 'a100.1x', location: 'us-east1-a', free: 0 } })
  const refused = await service.call('vmCreate', {
    body: vmBody({ name: 'four', type: 'a100.1x' }),
  })
  expect(refused.status).toBe(409)

  const first = nextMonth(await clock(), 1)
  const advanced = await lever('clockAdvance', { body: { to: first } })
  expect(advanced.status).toBe(200)
  expect((await clock()).now).toBe(first)
  const { items } = await service.ok('organizationInvoices', { token: await ownerToken(service) })
  expect(items.filter(({ state, usd }) => state !== 'open' && usd > 0)).toHaveLength(1)

  await lever('reset')
  expect((await service.ok('vmList')).items).toEqual([])
  expect(Math.abs(Date.parse((await clock()).now) - Date.now())).toBeLessThan(60_000)
})

test('everything that becomes due during a clock advance happens at its own time', async () => {
  await lever('clockSet', { body: { mode: 'frozen' } })
  const begin = Date.parse((await clock()).now)
  const { operation } = await service.ok('vmCreate', {
    body: vmBody({ ttl_seconds: 3_600, on_expiry: 'delete' }),
  })
  await service.ended(operation.operation_id)
  expect((await lever('clockAdvance', { body: { seconds: 31 * 86_400 } })).status).toBe(200)
  expect(Date.parse((await clock()).now)).toBe(begin + 31 * 86_400_000)
  const events = (await service.ok('eventList', { query: { limit: 500 } })).items
  const at = (type: string) =>
    events.filter((event) => event.type === type).map(({ created_at }) => created_at)
  expect(at('vm.expiring')).toEqual([new Date(begin + 3_000_000).toISOString()])
  expect(at('vm.deleted')).toEqual([new Date(begin + 3_600_000).toISOString()])
  const [metered] = await service.sql<{ seconds: number }>(
    `SELECT extract(epoch FROM upper(period) - lower(period))::float8 AS seconds FROM usage_intervals WHERE resource_type = 'vm'`,
  )
  expect(metered!.seconds).toBe(3_600)
})

test('moving the clock signs no user out', async () => {
  const token = await ownerToken(service)
  await lever('clockAdvance', { body: { seconds: 40 * 86_400 } })
  expect((await service.call('projectGet', { token })).status).toBe(200)
})

test('the clock runs faster on request, survives a restart, and never goes back', async () => {
  const before = (await clock()).now
  const earlier = new Date(Date.parse(before) - 60_000).toISOString()
  expect((await lever('clockAdvance', { body: { to: earlier } })).status).toBe(400)
  expect((await lever('clockSet', { body: { mode: 'frozen', now: earlier } })).status).toBe(400)
  expect((await lever('clockSet', { body: { mode: 'scaled' } })).status).toBe(400)
  await lever('clockSet', { body: { mode: 'scaled', rate: 3_600 } })
  await expect
    .poll(async () => Date.parse((await clock()).now) - Date.parse(before))
    .toBeGreaterThan(3_600_000)
  await lever('clockSet', { body: { mode: 'frozen' } })
  const frozen = await clock()
  await service.restart()
  expect(await clock()).toEqual(frozen)
})

test('the same seed makes the same VMs fail', async () => {
  const run = async () => {
    await lever('reset')
    const fault = { on: 'vm-create', step: 'boot', effect: 'fail', probability: 0.5, seed: 7 } as const
    await lever('faultCreate', { body: fault })
    const names = Array.from({ length: 8 }, (_, n) => `vm-${n}`)
    const operations = await Promise.all(names.map((name) => createVm(name)))
    return operations.map(({ state }) => state)
  }
  const first = await run()
  expect(new Set(first).size).toBe(2)
  expect(await run()).toEqual(first)
})

test('a fault affects one route, only matching names, and only the requested number of times', async () => {
  await lever('faultCreate', {
    body: { on: 'vmCreate', effect: 'reject', code: 'out_of_stock', name_pattern: 'train-*', times: 1 },
  })
  const create = (name: string) => service.call('vmCreate', { body: vmBody({ name }) })
  expect((await create('other')).status).toBe(200)
  expect(await create('train-1')).toMatchObject({ status: 409, body: { code: 'out_of_stock' } })
  expect((await create('train-1')).status).toBe(200)
  const { items } = (await lever('faultList')).body
  expect(items).toMatchObject([{ matched: 2, applied: 1 }])
  await lever('faultDelete', { id: items[0]!.id })
  expect((await lever('faultList')).body.items).toEqual([])
})

test('an engine with the effect “lie” reports a VM that inspection does not find', async () => {
  await lever('faultCreate', { body: { on: 'vm-create', step: 'boot', effect: 'lie' } })
  const operation = await createVm('ghost')
  expect(operation.state).toBe('SUCCEEDED')
  const [row] = await service.sql<{ count: number }>('SELECT count(*)::int AS count FROM simulated_vms')
  expect(row!.count).toBe(0)
})

test('a fault that cannot take effect is rejected', async () => {
  const refused = async (body: DevBody<'faultCreate'>) => (await lever('faultCreate', { body })).body.message
  expect(await refused({ on: 'vm-creat', effect: 'fail' })).toContain('did you mean vm-create')
  expect(await refused({ on: 'vm-create', step: 'bot', effect: 'fail' })).toContain('Supported: boot')
  expect(await refused({ on: 'vmCreate', effect: 'lie' })).toContain('for operations')
})

test('hosts, VMs and payments fail on request', async () => {
  const created = await createVm('crashes')
  const { id } = (await service.ok('vmList')).items[0]!
  expect(created.state).toBe('SUCCEEDED')
  await lever('vmCrash', { id })
  expect((await service.ok('vmGet', { params: { vm_id: id } })).state).toBe('STATE_CRASHED')

  const token = service.credentials.operator_key
  const { items: hosts } = await service.ok('adminHostList', { token })
  await lever('hostFail', { id: hosts[0]!.id })
  await lever('clockAdvance', { body: { seconds: 120 } })
  const state = async () =>
    (await service.ok('adminHostGet', { token, params: { host_id: hosts[0]!.id } })).state
  expect(await state()).toBe('down')
  await lever('hostRecover', { id: hosts[0]!.id })
  expect(await state()).toBe('up')

  const { organization_id } = service.credentials
  await lever('paymentsSet', { body: { organization_id, state: 'declined' } })
  expect((await service.call('vmCreate', { body: vmBody() })).status).toBe(402)
})

test('boots take the requested time, by the clock of the service', async () => {
  await lever('clockSet', { body: { mode: 'frozen' } })
  await lever('transitionsSet', { body: { mode: 'seconds', n: 90 } })
  const { operation } = await service.ok('vmCreate', { body: vmBody() })
  const state = async () =>
    (await service.ok('operationGet', { params: { operation_id: operation.operation_id } })).state
  await lever('clockAdvance', { body: { seconds: 89 } })
  expect(await state()).toBe('IN_PROGRESS')
  await lever('clockAdvance', { body: { seconds: 1 } })
  expect(await state()).toBe('SUCCEEDED')
  await lever('transitionsSet', { body: { mode: 'immediate' } })
})

test('the request log shows what a client sent, without credentials, secrets and scripts', async () => {
  const [last] = (await lever('requestList')).body.items.slice(-1)
  await service.call('vmCreate', { body: vmBody({ name: 'seen', startup_script: 'echo hunter2' }) })
  const { items } = (await lever('requestList', { query: `?after=${last?.position ?? 0}` })).body
  expect(items).toMatchObject([{ method: 'POST', route: 'vmCreate', status: 200, body: { name: 'seen' } }])
  expect(JSON.stringify(items)).not.toMatch(/hunter2|slp_|authorization/i)
})

test('a reset keeps the credentials and the database invariants', async () => {
  await createVm('one')
  const owner = await ownerToken(service)
  await service.ok('networkCreate', { body: { name: 'other', cidr: '10.9.0.0/16' } })
  await lever('reset')
  expect((await service.ok('vmList')).items).toEqual([])
  expect((await service.ok('networkList')).items).toHaveLength(1)
  expect((await service.call('projectGet', { token: owner })).status).toBe(200)
  await checkInvariants(service)
  expect((await createVm('one')).state).toBe('SUCCEEDED')
})

/** A day in the month after the current one, at one o'clock. */
function nextMonth({ now }: DevClock, day: number): string {
  const date = new Date(now)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, day, 1)).toISOString()
}
