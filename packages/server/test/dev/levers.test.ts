import type { DevClock } from '@slipway/contract'
import { checkInvariants } from '@slipway/testing/invariants.ts'
import { ownerToken } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Config } from '../../src/config/index.ts'

let service: TestService
let levers: TestService['levers']
beforeAll(async () => {
  service = await startService(withLevers)
})
afterAll(() => service?.close())
beforeEach(async () => {
  levers = service.levers
  await levers.reset()
})

const clock = () => service.levers.clock.get()
/** Returns the code and the message of the refusal. */
const refusal = (call: Promise<unknown>) =>
  call.then(
    () => 'done',
    ({ code, message }) => `${code}: ${message}`,
  )

async function createVm(name: string, more: object = {}) {
  const created = await service.ok('vmCreate', { body: vmBody({ name, ...more }) })
  return service.ended(created.operation.operation_id)
}

test('without --dev the levers do not exist and their code is not loaded', async () => {
  const plain = await service.another()
  const response = await fetch(`${plain.url}/_dev/clock`, {
    headers: { authorization: `Bearer ${service.credentials.operator_key}` },
  })
  expect(response.status).toBe(404)
  await plain.close()
})

test('only an operator on this machine can use the levers', async () => {
  const { operator_key: token, access_key } = service.credentials
  const status = async (options: Parameters<TestService['request']>[2]) =>
    (await service.request('DELETE', '/_dev/faults', options)).status
  expect(await status({ token: null })).toBe(401)
  expect(await status({ token: access_key })).toBe(403)
  expect(await status({ token, headers: { origin: 'https://evil.example' } })).toBe(403)
  expect(await status({ token, headers: { host: 'evil.example' } })).toBe(403)
  expect(await levers.faults.list()).toEqual([])
})

test('--dev is refused where other machines or other data could be reached', async () => {
  const refusalOf = (change: (config: Config) => unknown) =>
    service
      .another((config) => {
        withLevers(config)
        change(config)
      })
      .then(
        () => 'started',
        (error) => String(error),
      )
  const listenPublicly = ({ server }: Config) => Object.assign(server, { host: '0.0.0.0' })
  const useOtherDatabase = ({ database }: Config) => Object.assign(database, { urls: [service.databaseUrl] })
  const becomeWorker = ({ server }: Config) => Object.assign(server, { role: 'worker' })
  expect(await refusalOf(listenPublicly)).toContain('--dev listens on loopback only')
  expect(await refusalOf(useOtherDatabase)).toContain('--dev uses the embedded database only')
  expect(await refusalOf(becomeWorker)).toContain('--role all')
})

test('with the levers, a client freezes time, fills a location, fails the third boot, reaches the next month, and reads the invoice', async () => {
  await levers.clock.set({ mode: 'frozen', now: nextMonth(await clock(), 10) })
  const { now } = await clock()
  expect((await clock()).now).toBe(now)

  await levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 3 })
  await levers.faults.create({ on: 'vm-create', step: 'boot', effect: 'fail', after: 2, times: 1 })
  const states = []
  for (const name of ['one', 'two', 'three']) states.push((await createVm(name, { type: 'a100.1x' })).state)
  expect(states).toEqual(['SUCCEEDED', 'SUCCEEDED', 'FAILED'])

  await levers.capacity.set({ type: 'a100.1x', location: 'us-east1-a', free: 0 })
  const refused = await service.call('vmCreate', {
    body: vmBody({ name: 'four', type: 'a100.1x' }),
  })
  expect(refused.status).toBe(409)

  const first = nextMonth(await clock(), 1)
  expect((await levers.clock.advance({ to: first })).now).toBe(first)
  const { email, password } = service.credentials
  const signIn = { grant_type: 'password', email, password }
  const { access_token: token } = await service.ok('authToken', { token: null, body: signIn })
  const { items } = await service.ok('organizationInvoices', { token })
  expect(items.filter(({ state, usd }) => state !== 'open' && usd > 0)).toHaveLength(1)

  await levers.reset()
  expect((await service.ok('vmList')).items).toEqual([])
  expect(Math.abs(Date.parse((await clock()).now) - Date.now())).toBeLessThan(60_000)
})

test('everything that becomes due during a clock advance happens at its own time', async () => {
  await levers.clock.set({ mode: 'frozen' })
  const begin = Date.parse((await clock()).now)
  const { operation } = await service.ok('vmCreate', {
    body: vmBody({ ttl_seconds: 3_600, on_expiry: 'delete' }),
  })
  await service.ended(operation.operation_id)
  const { now } = await levers.clock.advance({ seconds: 31 * 86_400 })
  expect(Date.parse(now)).toBe(begin + 31 * 86_400_000)
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

test('the GPUs of a deleted VM are in stock when a clock advance returns', async () => {
  await createVm('gone')
  const [vm] = (await service.ok('vmList')).items
  await service.ok('vmDelete', { params: { vm_id: vm!.id } })
  await levers.clock.advance({ seconds: 0 })
  expect(await service.sql(`SELECT state FROM gpus WHERE state <> 'free'`)).toEqual([])
})

test('a host that failed is lost after half a minute, however far the clock moves, and groups replace its members', async () => {
  await levers.clock.set({ mode: 'frozen' })
  const begin = Date.parse((await clock()).now)
  const { name: _, ...vm } = vmBody()
  const group = {
    name: 'trainers',
    desired_count: 2,
    on_member_loss: 'replace',
    placement_policy: 'spread',
    vm,
  }
  const { operation } = await service.ok('instanceGroupCreate', { body: group })
  await service.ended(operation.operation_id)
  const params = { instance_group_id: operation.metadata.id }
  const before = await service.ok('instanceGroupGet', { params })
  const [lost] = await service.sql<{ host_id: string }>('SELECT host_id FROM vms WHERE id = $1', [
    before.instances[0],
  ])
  await levers.hosts.fail(lost!.host_id)
  await levers.clock.advance({ seconds: 86_400 })
  const query = { type: 'host.down' }
  const events = await service.ok('adminEventList', { token: service.credentials.operator_key, query })
  const lostAfterMs = Date.parse(events.items[0]!.created_at) - begin
  expect(lostAfterMs > 0 && lostAfterMs < 31_000).toBe(true)
  const after = await service.ok('instanceGroupGet', { params })
  expect(after).toMatchObject({ state: 'HEALTHY', running_instance_count: 2 })
  expect(after.instances).not.toContain(before.instances[0])
})

test('moving the clock signs no user out', async () => {
  const token = await ownerToken(service)
  await levers.clock.advance({ seconds: 40 * 86_400 })
  expect((await service.call('projectGet', { token })).status).toBe(200)
})

test('the clock runs faster on request, survives a restart, and never goes back', async () => {
  const before = (await clock()).now
  const earlier = new Date(Date.parse(before) - 60_000).toISOString()
  expect(await refusal(levers.clock.advance({ to: earlier }))).toContain('must not be earlier')
  expect(await refusal(levers.clock.set({ mode: 'frozen', now: earlier }))).toContain('must not be earlier')
  expect(await refusal(levers.clock.set({ mode: 'scaled' }))).toContain('rate')
  await levers.clock.set({ mode: 'scaled', rate: 3_600 })
  await expect
    .poll(async () => Date.parse((await clock()).now) - Date.parse(before))
    .toBeGreaterThan(3_600_000)
  await levers.clock.set({ mode: 'frozen' })
  const frozen = await clock()
  await service.restart()
  expect(await clock()).toEqual(frozen)
})

test('the same seed makes the same VMs fail', async () => {
  const run = async () => {
    await levers.reset()
    const fault = { on: 'vm-create', step: 'boot', effect: 'fail', probability: 0.5, seed: 7 } as const
    await levers.faults.create(fault)
    const names = Array.from({ length: 8 }, (_, n) => `vm-${n}`)
    const operations = await Promise.all(names.map((name) => createVm(name)))
    return operations.map(({ state }) => state)
  }
  const first = await run()
  expect(new Set(first).size).toBe(2)
  expect(await run()).toEqual(first)
})

test('a fault affects one route, only matching names, and only the requested number of times', async () => {
  await levers.faults.create({
    on: 'vmCreate',
    effect: 'reject',
    code: 'out_of_stock',
    name_pattern: 'train-*',
    times: 1,
  })
  const create = (name: string) => service.call('vmCreate', { body: vmBody({ name }) })
  expect((await create('other')).status).toBe(200)
  expect(await create('train-1')).toMatchObject({ status: 409, body: { code: 'out_of_stock' } })
  expect((await create('train-1')).status).toBe(200)
  const faults = await levers.faults.list()
  expect(faults).toMatchObject([{ matched: 2, applied: 1 }])
  await levers.faults.delete(faults[0]!.id)
  expect(await levers.faults.list()).toEqual([])
})

test('an engine fault with the effect “lie” reports a VM that inspection does not find', async () => {
  await levers.faults.create({ on: 'vm-create', step: 'boot', effect: 'lie' })
  const operation = await createVm('ghost')
  expect(operation.state).toBe('SUCCEEDED')
  const [row] = await service.sql<{ count: number }>('SELECT count(*)::int AS count FROM simulated_vms')
  expect(row!.count).toBe(0)
})

test('a fault that cannot take effect is rejected', async () => {
  const refused = (body: Parameters<typeof levers.faults.create>[0]) => refusal(levers.faults.create(body))
  expect(await refused({ on: 'vm-creat', effect: 'fail' })).toContain('did you mean vm-create')
  expect(await refused({ on: 'vm-create', step: 'bot', effect: 'fail' })).toContain('Supported: boot')
  expect(await refused({ on: 'vmCreate', effect: 'lie' })).toContain('applies only to operations')
})

test('hosts, VMs and payments fail on request', async () => {
  const created = await createVm('crashes')
  const { id } = (await service.ok('vmList')).items[0]!
  expect(created.state).toBe('SUCCEEDED')
  await levers.vms.crash(id)
  expect((await service.ok('vmGet', { params: { vm_id: id } })).state).toBe('STATE_CRASHED')

  const token = service.credentials.operator_key
  const { items: hosts } = await service.ok('adminHostList', { token })
  await levers.hosts.fail(hosts[0]!.id)
  await levers.clock.advance({ seconds: 120 })
  const state = async () =>
    (await service.ok('adminHostGet', { token, params: { host_id: hosts[0]!.id } })).state
  expect(await state()).toBe('down')
  await levers.hosts.recover(hosts[0]!.id)
  expect(await state()).toBe('up')

  const { organization_id } = service.credentials
  await levers.payments.set({ organization_id, state: 'declined' })
  expect((await service.call('vmCreate', { body: vmBody() })).status).toBe(402)
})

test('what is typed at the console of a VM is in its serial log, with the response of the guest', async () => {
  await createVm('talks')
  const [vm] = (await service.ok('vmList')).items
  const params = { vm_id: vm!.id }
  await levers.vms.console(vm!.id, { input: 'nvidia-smi\r' })
  expect((await service.ok('vmSerialLog', { params })).content).toContain(
    'nvidia-smi\r\nsimulated: nvidia-smi',
  )
  const { operation } = await service.ok('vmUpdate', { params, body: { action: 'STOP' } })
  await service.ended(operation.operation_id)
  expect(await refusal(levers.vms.console(vm!.id, { input: 'x' }))).toContain(
    'conflict: talks is not running.',
  )
})

test('clients that move the clock at the same time take turns', async () => {
  const { now } = await levers.clock.set({ mode: 'frozen' })
  const to = new Date(Date.parse(now) + 3_600_000).toISOString()
  const moved = await Promise.all([1, 2, 3].map(() => levers.clock.advance({ to })))
  expect(moved.map((each) => each.now)).toEqual([to, to, to])
})

test('boots take the requested time, by the clock of the service', async () => {
  await levers.clock.set({ mode: 'frozen' })
  await levers.transitions.set({ mode: 'seconds', n: 90 })
  const { operation } = await service.ok('vmCreate', { body: vmBody() })
  const state = async () =>
    (await service.ok('operationGet', { params: { operation_id: operation.operation_id } })).state
  await levers.clock.advance({ seconds: 89 })
  expect(await state()).toBe('IN_PROGRESS')
  await levers.clock.advance({ seconds: 1 })
  expect(await state()).toBe('SUCCEEDED')
  await levers.transitions.set({ mode: 'immediate' })
})

test('the request log shows what a client sent, without credentials, secrets and scripts', async () => {
  const last = (await levers.requests()).at(-1)
  await service.call('vmCreate', { body: vmBody({ name: 'seen', startup_script: 'echo hunter2' }) })
  const items = await levers.requests({ after: last?.position ?? 0 })
  expect(items).toMatchObject([{ method: 'POST', route: 'vmCreate', status: 200, body: { name: 'seen' } }])
  expect(JSON.stringify(items)).not.toMatch(/hunter2|slp_|authorization/i)
})

test('a reset keeps the credentials and the database invariants', async () => {
  await createVm('one')
  const owner = await ownerToken(service)
  await service.ok('networkCreate', { body: { name: 'other', cidr: '10.9.0.0/16' } })
  await levers.reset()
  expect((await service.ok('vmList')).items).toEqual([])
  expect((await service.ok('networkList')).items).toHaveLength(1)
  expect((await service.call('projectGet', { token: owner })).status).toBe(200)
  await checkInvariants(service)
  expect((await createVm('one')).state).toBe('SUCCEEDED')
})

/** Returns a day in the month after the current one, at one o'clock. */
function nextMonth({ now }: DevClock, day: number): string {
  const date = new Date(now)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, day, 1)).toISOString()
}
