import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { SimulatedEngine } from '../../src/engines/simulated/engine.ts'

let service: TestService
beforeAll(async () => {
  service = await startService(withLevers)
})
afterEach(() => engine().clearFaults())
afterAll(() => service.close())

const location = 'us-east1-a'
let count = 0
const fresh = (prefix: string) => `${prefix}-${++count}`

type OperationResponse = { operation: { operation_id: string; metadata: { id: string } } }
const awaitEnd = async ({ operation }: OperationResponse) => {
  const ended = await service.ended(operation.operation_id)
  expect(ended).toMatchObject({ state: 'SUCCEEDED' })
  return operation.metadata.id
}
const newDisk = async (body: object = {}) =>
  awaitEnd(
    await service.ok('diskCreate', { body: { name: fresh('disk'), size: '16GiB', location, ...body } }),
  )
const newVm = async (body: object = {}) =>
  awaitEnd(await service.ok('vmCreate', { body: vmBody({ location, ...body }) }))
const newSnapshot = async (disk_id: string, body: object = {}) =>
  awaitEnd(await service.ok('snapshotCreate', { body: { name: fresh('snapshot'), disk_id, ...body } }))
const engine = () => service.server.services.engines.get(location) as SimulatedEngine

test('a snapshot outlives its disk, and a larger disk is created from it', async () => {
  const disk_id = await newDisk({ block_size: 4096 })
  const accepted = await service.ok('snapshotCreate', {
    body: { name: 'monday', disk_id, labels: { team: 'ml' }, description: 'Before the migration' },
  })
  const ended = await service.ended(accepted.operation.operation_id)
  const params = { snapshot_id: accepted.operation.metadata.id }
  const snapshot = await service.ok('snapshotGet', { params })
  expect(ended).toMatchObject({ state: 'SUCCEEDED', metadata: { type: 'snapshot' }, result: snapshot })
  expect(snapshot).toMatchObject({
    ...{ name: 'monday', created_from: disk_id, size: '16GiB', block_size: 4096, location },
    ...{ state: 'available', consistency: 'off', stored_bytes: 2 * 1024 ** 3 },
    ...{ labels: { team: 'ml' }, description: 'Before the migration', deletion_protection: false },
  })
  const query = { created_from: disk_id, label_selector: 'team=ml' }
  expect((await service.ok('snapshotList', { query })).items).toEqual([snapshot])

  await awaitEnd(await service.ok('diskDelete', { params: { disk_id } }))
  const copy = await awaitEnd(
    await service.ok('diskCreate', { body: { name: fresh('copy'), size: '32GiB', ...params } }),
  )
  expect(await service.ok('diskGet', { params: { disk_id: copy } })).toMatchObject({
    ...{ size: '32GiB', location, block_size: 4096, state: 'available' },
  })
  const same = await awaitEnd(await service.ok('diskCreate', { body: { name: fresh('copy'), ...params } }))
  expect(await service.ok('diskGet', { params: { disk_id: same } })).toMatchObject({ size: '16GiB' })
  await awaitEnd(await service.ok('snapshotDelete', { params }))
  expect((await service.call('snapshotGet', { params })).status).toBe(404)
  await settle(service)
  await checkInvariants(service)
})

test('a disk of a running VM is frozen if the guest has an agent; otherwise the copy contains what a power failure would leave', async () => {
  const disk_id = await newDisk()
  const vm_id = await newVm({ disks: [{ disk_id }] })
  const consistencyOf = async (snapshot_id: string) =>
    (await service.ok('snapshotGet', { params: { snapshot_id } })).consistency
  expect(await consistencyOf(await newSnapshot(disk_id))).toBe('crash')
  const demanding = await service.ok('snapshotCreate', {
    body: { name: fresh('snapshot'), disk_id, require_frozen: true },
  })
  expect(await service.ended(demanding.operation.operation_id)).toMatchObject({
    state: 'FAILED',
    result: { code: 'conflict', message: expect.stringContaining('guest agent') },
  })
  const params = { snapshot_id: demanding.operation.metadata.id }
  expect((await service.call('snapshotGet', { params })).status).toBe(404)

  await service.levers.guestAgent.set({ present: true })
  expect(await consistencyOf(await newSnapshot(disk_id, { require_frozen: true }))).toBe('frozen')
  await service.levers.guestAgent.set({ present: false })
  await awaitEnd(await service.ok('vmUpdate', { params: { vm_id }, body: { action: 'STOP' } }))
  expect(await consistencyOf(await newSnapshot(disk_id, { require_frozen: true }))).toBe('off')
})

test('a disk that is being copied, and its VM, cannot be changed', async () => {
  const disk_id = await newDisk()
  const vm_id = await newVm({ disks: [{ disk_id }] })
  await engine().addFault({ method: 'capture', kind: 'fail', times: 1000 })
  const accepted = await service.ok('snapshotCreate', { body: { name: fresh('snapshot'), disk_id } })
  const { operation_id, metadata } = accepted.operation
  const refusals = await Promise.all([
    service.call('vmUpdate', { params: { vm_id }, body: { action: 'STOP' } }),
    service.call('vmUpdate', { params: { vm_id }, body: { action: 'RESET' } }),
    service.call('vmDetachDisks', { params: { vm_id }, body: { detach_disks: [disk_id] } }),
    service.call('diskUpdate', { params: { disk_id }, body: { size: '32GiB' } }),
    service.call('diskDelete', { params: { disk_id } }),
    service.call('snapshotCreate', { body: { name: fresh('snapshot'), disk_id } }),
    service.call('diskCreate', { body: { name: fresh('copy'), snapshot_id: metadata.id } }),
    service.call('customImageCreate', { body: { name: fresh('image'), snapshot_id: metadata.id } }),
  ])
  for (const { status, body } of refusals) {
    expect(status).toBe(409)
    expect(body).toMatchObject({ code: 'conflict', details: { operation_id } })
  }
  await engine().clearFaults()
  await awaitEnd(accepted)
  await awaitEnd(await service.ok('vmUpdate', { params: { vm_id }, body: { action: 'STOP' } }))
})

test('a copy of a disk that is being attached is refused, and the error names the operation to wait for', async () => {
  const disk_id = await newDisk()
  const vm_id = await newVm()
  await engine().addFault({ method: 'attachDisk', kind: 'fail', times: 1000 })
  const blocker = new pg.Client({ connectionString: service.databaseUrl })
  await blocker.connect()
  await blocker.query('BEGIN')
  await blocker.query('SELECT FROM disks WHERE id = $1 FOR UPDATE', [disk_id])
  const waiting = (count: number) =>
    eventually(async () => {
      const found = await service.sql(
        `SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%disks%FOR UPDATE%'`,
      )
      return found.length === count
    })
  const attach = service.ok('vmAttachDisks', {
    params: { vm_id },
    body: { attach_disks: [{ disk_id, attachment_type: 'data', mode: 'read-write' }] },
  })
  await waiting(1)
  const copy = service.call('snapshotCreate', { body: { name: fresh('snapshot'), disk_id } })
  await waiting(2)
  await blocker.query('COMMIT')
  await blocker.end()
  const accepted = await attach
  const { operation_id } = accepted.operation
  expect(await copy).toMatchObject({ status: 409, body: { details: { operation_id } } })
  await engine().clearFaults()
  await awaitEnd(accepted)
  await newSnapshot(disk_id)
})

test('disks that cannot be copied and snapshots that cannot be restored are refused', async () => {
  const shared = await newDisk({ size: '1TiB', type: 'shared-volume' })
  const refused = (body: object) => service.call('snapshotCreate', { body: { name: fresh('no'), ...body } })
  expect((await refused({ disk_id: shared })).body).toMatchObject({
    code: 'invalid_argument',
    message: expect.stringContaining('shared volume'),
  })
  expect((await refused({ disk_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10' })).status).toBe(404)
  const snapshot_id = await newSnapshot(await newDisk())
  const create = (body: object) =>
    service.call('diskCreate', { body: { name: fresh('no'), snapshot_id, ...body } })
  for (const [body, field] of [
    [{ size: '8GiB' }, '/size'],
    [{ location: 'eu-north1-a' }, '/location'],
    [{ block_size: 4096 }, '/block_size'],
    [{ type: 'shared-volume', size: '1TiB' }, '/type'],
    [{ snapshot_id: shared }, '/snapshot_id'],
  ] as const)
    expect(await create(body)).toMatchObject({ status: 400, body: { details: [{ field }] } })
})

test('a change of a snapshot completes immediately, and a protected snapshot cannot be deleted', async () => {
  const snapshot_id = await newSnapshot(await newDisk())
  const params = { snapshot_id }
  const name = fresh('renamed')
  const change = { name, labels: { stage: 'prod' }, deletion_protection: true }
  expect(await service.ok('snapshotUpdate', { params, body: change })).toMatchObject(change)
  const other = await newSnapshot(await newDisk())
  const taken = await service.call('snapshotUpdate', { params: { snapshot_id: other }, body: { name } })
  expect(taken).toMatchObject({ status: 409, body: { code: 'already_exists' } })
  expect(taken.body).not.toHaveProperty('details')
  expect(await service.call('snapshotDelete', { params })).toMatchObject({
    status: 409,
    body: { code: 'protected' },
  })
  await service.ok('snapshotUpdate', { params, body: { deletion_protection: false } })
  await awaitEnd(await service.ok('snapshotDelete', { params }))
})

test('a snapshot from which a disk is being created cannot be deleted, and a failed snapshot leaves nothing', async () => {
  const disk_id = await newDisk()
  const snapshot_id = await newSnapshot(disk_id)
  await engine().addFault({ method: 'ensureDisk', kind: 'fail', times: 1000 })
  const restore = await service.ok('diskCreate', { body: { name: fresh('copy'), snapshot_id } })
  const { operation_id, metadata } = restore.operation
  for (const refusal of [
    await service.call('snapshotDelete', { params: { snapshot_id } }),
    await service.call('snapshotCreate', { body: { name: fresh('snapshot'), disk_id: metadata.id } }),
    await service.call('vmCreate', { body: vmBody({ location, disks: [{ disk_id: metadata.id }] }) }),
  ])
    expect(refusal).toMatchObject({ status: 409, body: { code: 'conflict', details: { operation_id } } })
  await engine().clearFaults()
  await awaitEnd(restore)
  const { organization_id } = service.credentials
  const usedOf = async () => {
    const token = service.credentials.operator_key
    const { items } = await service.ok('adminOrganizationQuotaList', { token, params: { organization_id } })
    return items.find(({ name }) => name === 'captured_gib')!.used
  }
  const before = await usedOf()
  await engine().addFault({ method: 'capture', kind: 'reject' })
  const failing = await service.ok('snapshotCreate', { body: { name: fresh('snapshot'), disk_id } })
  expect(await service.ended(failing.operation.operation_id)).toMatchObject({ state: 'FAILED' })
  expect(await usedOf()).toBe(before)
  const { items } = await service.ok('eventList', { query: { type: 'snapshot.failed', limit: 1 } })
  expect(items[0]).toMatchObject({ resource_id: failing.operation.metadata.id })
  await settle(service)
  await checkInvariants(service)
})

test('usage counts the stored bytes of a snapshot in whole GB, from its completion to its deletion', async () => {
  const disk_id = await newDisk({ size: '20GiB' })
  const snapshot_id = await newSnapshot(disk_id)
  const { stored_bytes } = await service.ok('snapshotGet', { params: { snapshot_id } })
  const [open] = await service.sql<{ quantity: string; product_name: string; resource_type: string }>(
    'SELECT quantity, product_name, resource_type FROM usage_intervals WHERE resource_id = $1 AND upper_inf(period)',
    [snapshot_id],
  )
  expect(Number(open!.quantity)).toBe(Math.ceil(stored_bytes / 1024 ** 3))
  expect(open).toMatchObject({ product_name: 'snapshot', resource_type: 'snapshot' })
  await service.levers.clock.advance({ seconds: 7200 })
  await awaitEnd(await service.ok('snapshotDelete', { params: { snapshot_id } }))
  // The usage of a day is added up when the day is over.
  await service.levers.clock.advance({ seconds: 86_400 })
  const { items } = await service.ok('projectUsage', {
    query: { group_by: 'resource', resource_type: 'snapshot' },
  })
  const used = items.filter(({ resource_id }) => resource_id === snapshot_id)
  const sum = used.reduce((total, { quantity }) => total + quantity, 0)
  expect(sum).toBeGreaterThanOrEqual(6)
  expect(sum).toBeLessThan(6.1)
  expect(used[0]).toMatchObject({ unit: 'gb_hour' })
})
