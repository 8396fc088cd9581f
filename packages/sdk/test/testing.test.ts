import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApiError, createClient, logIn } from '@slipway/sdk'
import { connectLevers, type LocalService, startService } from '@slipway/sdk/testing'
import { eventually } from '@slipway/testing/eventually.ts'
import { startInProcessServer } from '@slipway/testing/in-process-server.ts'
import { startProgram } from '@slipway/testing/program.ts'
import { root } from '@slipway/testing/root.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { build } from 'esbuild'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'

/** Keeps the prepared data of these tests out of the user's cache. */
const cache = mkdtempSync(join(tmpdir(), 'slipway-cache-'))
process.env.XDG_CACHE_HOME = cache
afterAll(() => {
  delete process.env.XDG_CACHE_HOME
  rmSync(cache, { recursive: true })
})

let service: LocalService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service?.stop())
beforeEach(() => service.levers.reset())

/**
 * A directory for the temporary files of services, in tests that check that these files are removed. PostgreSQL runs as
 * another user and must be able to access them.
 */
const scratch = mkdtempSync(join(tmpdir(), 'slipway-'))
chmodSync(scratch, 0o755)
afterAll(() => rmSync(scratch, { recursive: true }))

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'done',
    (error) => (error instanceof ApiError ? error.code : String(error)),
  )

const vm = {
  type: 'a100.1x',
  location: 'us-east1-a',
  image: 'ubuntu24.04-nvidia:latest',
  ssh_public_key: sshKey,
} as const

async function create(name: string) {
  const { operation } = await service.project.vmCreate({ ...vm, name })
  return (await service.project.wait(operation)).result
}

test('a client can test an out-of-stock error, a failed boot and the end of a month', async () => {
  const { project, levers, credentials, url } = service
  await levers.clock.set({ mode: 'frozen' })
  await levers.capacity.set({ type: vm.type, location: vm.location, free: 2 })
  await levers.faults.create({ on: 'vm-create', step: 'boot', effect: 'fail', after: 1, times: 1 })
  expect((await create('one')).state).toBe('STATE_RUNNING')
  expect(await codeOf(create('two'))).toBe('boot_failed')
  expect(await levers.faults.list()).toMatchObject([{ matched: 2, applied: 1 }])
  await levers.faults.deleteAll()
  expect(await levers.faults.list()).toEqual([])
  await levers.capacity.set({ type: vm.type, location: vm.location, free: 0 })
  expect(await codeOf(create('three'))).toBe('out_of_stock')

  const { now } = await levers.clock.get()
  const advanced = await levers.clock.advance({ seconds: 31 * 86_400 })
  expect(Date.parse(advanced.now) - Date.parse(now)).toBe(31 * 86_400_000)
  const { organization_id, email, password } = credentials
  const { token } = await logIn({ baseUrl: url, email, password })
  const owner = createClient({ baseUrl: url, token })
  const invoices = await owner.collect('organizationInvoices', { organization_id })
  expect(invoices.some(({ state, usd }) => state !== 'open' && usd > 0)).toBe(true)
  expect(await project.collect('vmList')).toHaveLength(1)
})

test('hosts, VMs and payments can fail, boots can be slow, and the requests of the client are recorded', async () => {
  const { project, levers, credentials, url } = service
  const { id } = await create('crashes')
  await levers.vms.crash(id)
  expect((await project.vmGet({ vm_id: id })).state).toBe('STATE_CRASHED')
  const { organization_id } = credentials
  await levers.payments.set({ organization_id, state: 'declined' })
  expect(await codeOf(create('unpaid'))).toBe('payment_method_required')
  await levers.payments.set({ organization_id, state: 'active' })

  const operator = createClient({ baseUrl: url, token: credentials.operator_key })
  const [host] = await operator.collect('adminHostList', { location: vm.location })
  const hostState = async () => (await operator.adminHostGet({ host_id: host!.id })).state
  await levers.hosts.fail(host!.id)
  await levers.clock.advance({ seconds: 120 })
  expect(await hostState()).toBe('down')
  await levers.hosts.recover(host!.id)
  expect(await hostState()).toBe('up')
  expect(await codeOf(create('../bad'))).toBe('invalid_argument')

  const requests = await levers.requests()
  expect(requests.map(({ route, status }) => [route, status]).at(-1)).toEqual(['vmCreate', 400])
  expect(await levers.requests({ after: requests.at(-1)!.position })).toEqual([])

  await levers.clock.set({ mode: 'frozen' })
  await levers.transitions.set({ mode: 'seconds', n: 90 })
  const { operation_id } = (await project.vmCreate({ ...vm, name: 'slow' })).operation
  await levers.clock.advance({ seconds: 60 })
  expect((await project.operationGet({ operation_id })).state).toBe('IN_PROGRESS')
  await levers.clock.advance({ seconds: 60 })
  expect((await project.operationGet({ operation_id })).state).toBe('SUCCEEDED')
  await levers.transitions.set({ mode: 'immediate' })
})

test('an invalid lever call throws the ApiError of @slipway/sdk, whether or not it was sent', async () => {
  const { levers } = service
  expect(await codeOf(levers.vms.crash('../reset'))).toBe('invalid_argument')
  expect(await codeOf(levers.vms.crash(service.credentials.project_id))).toBe('not_found')
  await expect(levers.faults.create({ on: 'vm-creat', effect: 'fail' })).rejects.toThrow('did you mean')
})

test('the levers of a running service work with its operator key', async () => {
  const { url, credentials } = service
  const levers = connectLevers({ url, operatorKey: credentials.operator_key })
  await levers.clock.set({ mode: 'scaled', rate: 60 })
  expect(await service.levers.clock.get()).toMatchObject({ mode: 'scaled', rate: 60 })
  expect(await codeOf(connectLevers({ url, operatorKey: credentials.access_key }).clock.get())).toBe(
    'permission_denied',
  )
})

test('a service without --dev is recognized', async () => {
  const { api_url: url, operator_key: operatorKey, close } = await startInProcessServer()
  const levers = connectLevers({ url, operatorKey })
  for (const call of [levers.reset, levers.clock.get, () => levers.vms.crash(service.credentials.project_id)])
    await expect(call()).rejects.toThrow('This service was not started with --dev.')
  await close()
})

test('a server that cannot start is reported with its output, and leaves nothing behind', async () => {
  vi.stubEnv('TMPDIR', scratch)
  onTestFinished(() => void vi.unstubAllEnvs())
  const command = [process.execPath, join(root, 'packages/server/bin/slipway-server.js'), '--wrong']
  await expect(startService({ command })).rejects.toThrow(/ended with code 2.*unknown flag --wrong/s)
  await expect(startService({ command: ['/no/such/program'] })).rejects.toThrow('Cannot start the service')
  expect(readdirSync(scratch)).toEqual([])
})

test('services start with copies of the same data and share nothing', async () => {
  const second = await startService()
  onTestFinished(() => second.stop())
  const namesOf = async ({ project }: LocalService) =>
    (await project.collect('vmList', {})).map(({ name }) => name)
  await create('mine')
  const { operation } = await second.project.vmCreate({ ...vm, name: 'yours' })
  await second.project.wait(operation)
  expect(await namesOf(service)).toEqual(['mine'])
  expect(await namesOf(second)).toEqual(['yours'])
})

test('a start that fails with damaged prepared data removes the data, so that the next start works', async () => {
  const kept = join(cache, 'slipway/testing')
  for (const name of readdirSync(kept))
    rmSync(join(kept, name, 'data/postgres/data/global'), { recursive: true })
  await expect(startService()).rejects.toThrow('before it was ready')
  await (await startService()).stop()
})

test('the service ends with the process that started it, even if this process is killed', async () => {
  const contents = `
    import { startService } from '@slipway/sdk/testing'
    console.log('ready', (await startService()).url)
    setInterval(() => {}, 1000)`
  const stdin = { contents, resolveDir: import.meta.dirname, loader: 'ts' as const }
  const { outputFiles } = await build({ stdin, write: false, bundle: true, platform: 'node', format: 'esm' })
  const args = ['--input-type=module', '--eval', outputFiles[0]!.text]
  const program = startProgram(process.execPath, args, {
    cwd: root,
    env: { TMPDIR: scratch, XDG_CACHE_HOME: cache },
  })
  const url = await program.line('ready')
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  await program.end('SIGKILL')
  await eventually(() => readdirSync(scratch).length === 0)
  await expect(fetch(`${url}/healthz`)).rejects.toThrow()
})
