import { createHash } from 'node:crypto'
import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { freshName, resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newHostKey } from '../../src/domain/guest/host-key.ts'

let service: TestService
let resources: ReturnType<typeof resourcesOf>

beforeAll(async () => {
  service = await startService()
  resources = resourcesOf(service)
})
afterAll(() => service.close())

const read = (vm_id: string) => service.ok('vmGet', { params: { vm_id } })
const change = (vm_id: string, body: unknown) => service.call('vmUpdate', { params: { vm_id }, body })
const remove = (vm_id: string) => service.call('vmDelete', { params: { vm_id } })
const create = (changes: Record<string, unknown>) => service.call('vmCreate', { body: vmBody(changes) })
const stateWhen = (vm_id: string, state: string) =>
  eventually(async () => (await resources.stateOf(vm_id)) === state)

test('a VM shows the values of its creation request and the values that were assigned', async () => {
  const startup_script = '#!/bin/sh\necho hello\n'
  const given = { labels: { team: 'ml' }, description: 'a run', deletion_protection: true }
  const id = await resources.newVm({ ...given, startup_script })
  const { started_at, ...vm } = await read(id)
  expect(vm).toMatchObject({
    ...given,
    ssh_public_keys: [sshKey],
    ssh_host_keys: [],
    startup_script_sha256: createHash('sha256').update(startup_script).digest('hex'),
    scratch_gb: 960,
  })
  expect(started_at).toMatch(/^2/)
  expect(await read(await resources.newVm({ type: 'l40s-48gb.1x', location: 'us-east1-a' }))).toMatchObject({
    labels: {},
    description: '',
    deletion_protection: false,
    startup_script_sha256: '',
    scratch_gb: 0,
  })
  await change(id, { deletion_protection: false })
})

test('VMs can be found by their labels', async () => {
  const [one, two] = [freshName('one'), freshName('two')]
  await resources.newVm({ name: one, labels: { search: 'a', stage: 'test' } })
  await resources.newVm({ name: two, labels: { search: 'b' } })
  const named = async (label_selector: string) =>
    (await service.ok('vmList', { query: { label_selector } })).items.map(({ name }) => name)
  expect(await named('search=a')).toEqual([one])
  expect(await named('search,stage!=test')).toEqual([two])
  expect(await named('search,!stage')).toEqual([two])
  expect(await named('search')).toEqual([two, one])
})

test('updating the name, description or labels of a VM returns an operation that has already succeeded, in any state', async () => {
  const id = await resources.newVm()
  const before = await read(id)
  const body = { name: freshName('renamed'), labels: { team: 'web' }, description: 'new' }
  const { operation } = (await change(id, body)).body
  expect(operation).toMatchObject({
    state: 'SUCCEEDED',
    metadata: { operation_name: 'UPDATE', type: 'vm', id, request: body },
    result: body,
  })
  expect(operation.result).toEqual({ ...(await read(id)), cost_usd: expect.any(Number) })
  expect((await read(id)).disks[0]!.name).toBe(`${body.name}-os`)
  const generation = async () =>
    (await service.sql<{ generation: number }>('SELECT generation FROM vms WHERE id = $1', [id]))[0]!
  expect(await generation()).toEqual({ generation: 1 })
  expect(before.updated_at <= (await read(id)).updated_at).toBe(true)

  await service.simulator().addFault({ method: 'powerVm', kind: 'fail', times: 100 })
  const stop = await resources.act(id, { action: 'STOP' })
  expect((await change(id, { description: 'stopping' })).body.operation.state).toBe('SUCCEEDED')
  await service.simulator().clearFaults()
  expect((await service.advanceUntilEnded(stop.operation.operation_id)).state).toBe('SUCCEEDED')
  expect(await read(id)).toMatchObject({ state: 'STATE_SHUTOFF', description: 'stopping' })

  await service.simulator().addFault({ method: 'removeVm', kind: 'fail', times: 100 })
  const deletion = await resources.removeVm(id)
  expect(await change(id, { description: 'late' })).toMatchObject({
    status: 409,
    body: { code: 'conflict' },
  })
  await service.simulator().clearFaults()
  expect((await service.advanceUntilEnded(deletion.operation.operation_id)).state).toBe('SUCCEEDED')
})

test('a VM cannot get the name of another existing VM', async () => {
  const taken = freshName('taken')
  const other = await resources.newVm({ name: taken })
  const id = await resources.newVm()
  expect(await change(id, { name: taken })).toMatchObject({ status: 409, body: { code: 'already_exists' } })
  await resources.succeeded(await resources.removeVm(other))
  expect((await change(id, { name: taken })).status).toBe(200)
  expect(await create({ name: taken })).toMatchObject({ status: 409, body: { code: 'already_exists' } })
})

test('every event of a VM contains its labels', async () => {
  const labels = { team: 'ml' }
  const id = await resources.newVm({ labels })
  await resources.succeeded(await resources.act(id, { action: 'RESET' }))
  await resources.succeeded(await resources.removeVm(id))
  const events = async () => (await service.ok('eventList', { query: { resource_id: id } })).items
  await eventually(async () => (await events()).some(({ type }) => type === 'vm.deleted'))
  const vmEvents = (await events()).filter(({ type }) => type.startsWith('vm.'))
  expect(vmEvents.map(({ type, data }) => [type, data.labels])).toEqual(
    ['deleted', 'deleting', 'running', 'resetting', 'running', 'creating'].map((type) => [
      `vm.${type}`,
      labels,
    ]),
  )
})

test('a protected VM is deleted neither by its tenant nor when its TTL expires', async () => {
  const id = await resources.newVm({ deletion_protection: true, ttl_seconds: 300, on_expiry: 'delete' })
  expect(await remove(id)).toMatchObject({ status: 409, body: { code: 'protected' } })
  await service.clock.advance('301 seconds')
  await service.server.reconciler.expiry()
  await stateWhen(id, 'STATE_SHUTOFF')
  await service.server.reconciler.expiry()
  expect(await read(id)).toMatchObject({ state: 'STATE_SHUTOFF', expires_at: '' })
  await change(id, { deletion_protection: false })
  await resources.succeeded((await remove(id)).body)
})

test('a refused deletion does not affect concurrent deletions', async () => {
  const ids = [await resources.newVm({ deletion_protection: true }), await resources.newVm()]
  const responses = await Promise.all(ids.map(remove))
  expect(responses.map(({ status }) => status)).toEqual([409, 200])
  await resources.succeeded(responses[1]!.body)
  await change(ids[0]!, { deletion_protection: false })
  await resources.succeeded((await remove(ids[0]!)).body)
})

test('a VM has each SSH key that was sent or referenced, once, even after the registered keys are removed', async () => {
  const [first, second] = [newHostKey().publicKey, `${newHostKey().publicKey} work\n`]
  const keys = await Promise.all(
    [first, second, sshKey].map((public_key) =>
      service.ok('sshKeyCreate', { body: { name: freshName('key'), public_key } }),
    ),
  )
  const ssh_key_ids = keys.map(({ id }) => id)
  const accepted = await resources.createVm({ ssh_key_ids })
  expect(accepted.operation.metadata.request).toMatchObject({ ssh_key_ids, ssh_public_key: sshKey })
  const id = await resources.succeeded(accepted)
  expect((await read(id)).ssh_public_keys).toEqual([sshKey, first, second.trim()])
  const { ssh_public_key, ...body } = vmBody({ ssh_key_ids: ssh_key_ids.slice(0, 1) })
  const alone = await resources.succeeded(await service.ok('vmCreate', { body }))
  await service.ok('sshKeyDelete', { params: { ssh_key_id: ssh_key_ids[0]! } })
  expect((await read(alone)).ssh_public_keys).toEqual([first])
})

test.each([
  [{ ssh_public_key: undefined }, '/ssh_public_key', /is required unless ssh_key_ids/],
  [{ ssh_public_key: undefined, ssh_key_ids: [] }, '/ssh_public_key', /is required unless/],
  [{ ssh_key_ids: ['0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'] }, '/ssh_key_ids/0', /of this project/],
  [{ os_disk_size: '127GiB' }, '/os_disk_size', /from 128GiB to 2TiB/],
  [{ os_disk_size: '3TiB' }, '/os_disk_size', /from 128GiB to 2TiB/],
  [{ os_disk_size: '256' }, '/os_disk_size', /did you mean 256GiB/],
  [{ startup_script: '#cloud-config\n', image: 'debian12:latest' }, '/startup_script', /has no cloud-init/],
  [{ shutdown_script: '#cloud-config\n' }, '/shutdown_script', /only startup_script/],
])('a VM with %j is rejected, and the error names the field', async (changes, field, message) => {
  if ('image' in changes) await service.sql(`UPDATE images SET tags = '{}' WHERE name = 'debian12:latest'`)
  const { status, body } = await create(changes)
  const { details } = body as unknown as { details: { field: string; message: string }[] }
  expect([status, details[0]!.field]).toEqual([400, field])
  expect(details[0]!.message).toMatch(message)
})

test('an OS disk above 128 GiB counts and costs like a disk until the VM is deleted', async () => {
  const quota = async () =>
    (await service.ok('quotaList')).items.find(({ name }) => name === 'disk_gib')!.used
  const metered = () =>
    service.sql(
      'SELECT product_name, quantity FROM usage_intervals WHERE upper_inf(period) AND resource_id = $1',
      [osDiskId],
    )
  const before = await quota()
  const id = await resources.newVm({ os_disk_size: '1TiB' })
  const osDisk = (await read(id)).disks[0]!
  const osDiskId = osDisk.id
  expect(osDisk.size).toBe('1TiB')
  expect(await quota()).toBe(before + 1024 - 128)
  expect(await metered()).toEqual([{ product_name: 'persistent-ssd', quantity: 896 }])
  await resources.succeeded(await resources.act(id, { action: 'STOP' }))
  expect(await metered()).toHaveLength(1)
  await resources.succeeded(await resources.removeVm(id))
  expect(await quota()).toBe(before)
  expect(await metered()).toEqual([])
  const { items, usd_per_hour } = await service.ok('estimateCreate', {
    body: { vm: vmBody({ os_disk_size: '228GiB' }) },
  })
  expect(items).toMatchObject([
    { product_name: 'a100.1x', quantity: 1 },
    { product_name: 'persistent-ssd', quantity: 100, usd_per_hour: 0.013 },
  ])
  expect(usd_per_hour).toBeCloseTo(items[0]!.usd_per_hour! + 0.013, 10)
})

test('a failed creation releases the quota and meter of its larger OS disk', async () => {
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject' })
  const { operation } = await resources.createVm({ os_disk_size: '256GiB' })
  expect((await service.ended(operation.operation_id)).state).toBe('FAILED')
  const { items } = await service.ok('quotaList')
  expect(items.find(({ name }) => name === 'disk_gib')!.used).toBe(0)
})

test('all invariants hold after the tests of this file', async () => {
  await settle(service)
  await checkInvariants(service)
})
