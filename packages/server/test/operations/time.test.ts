import { eventually } from '@slipway/testing/eventually.ts'
import { addStrayVm } from '@slipway/testing/fleet.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { tokenOf } from '@slipway/testing/people.ts'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, useService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import { takeLease } from '../../src/postgres/leases.ts'

let service: TestService
let resources: ReturnType<typeof resourcesOf>

beforeAll(async () => {
  service = await startService()
  resources = resourcesOf(service)
})
afterAll(() => service.close())
afterEach(async () => {
  await resources.clear()
  await settle(service)
  await checkInvariants(service)
})

const hostOf = async (vmId: string) => {
  const [row] = await service.sql<{ name: string }>(
    'SELECT h.name FROM vms v JOIN hosts h ON h.id = v.host_id WHERE v.id = $1',
    [vmId],
  )
  return row!.name
}
const until = (vmId: string, state: string) =>
  eventually(async () => {
    await service.server.reconciler.reports()
    return (await resources.stateOf(vmId)) === state
  })
const lose = async (host: string) => {
  await service.simulator().setHostLost(host, true)
  await service.clock.advance('31 seconds')
}
const bringBack = (host: string) => service.simulator().setHostLost(host, false)
const gpuCounts = async () => {
  const rows = await service.sql<{ state: string; count: number }>(
    `SELECT state, count(*)::int AS count FROM gpus WHERE state <> 'free' GROUP BY state`,
  )
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]))
}

test('a released GPU stays in quarantine until its reset is complete', async () => {
  const own = await useService((config) => {
    for (const location of config.locations)
      if (location.engine === 'simulated') location.simulated.quarantineMs = 600_000
  })
  const busy = () => own.sql(`SELECT FROM gpus WHERE state = 'quarantined'`)
  const { operation } = await own.ok('vmCreate', { body: vmBody({ type: 'a100.2x' }) })
  await own.ended(operation.operation_id)
  const gone = await own.ok('vmDelete', { params: { vm_id: operation.metadata.id } })
  await own.ended(gone.operation.operation_id)
  await settle(own)
  expect(await busy()).toHaveLength(2)
  await own.clock.advance('9 minutes')
  await settle(own)
  expect(await busy()).toHaveLength(2)
  await own.clock.advance('2 minutes')
  await settle(own)
  expect(await busy()).toHaveLength(0)
  await checkInvariants(own)
})

test('a boot that never ends fails at its deadline and leaves nothing', async () => {
  const own = await useService((config) => {
    for (const location of config.locations)
      if (location.engine === 'simulated') location.simulated.bootMs = [10 * 3_600_000, 10 * 3_600_000]
  })
  const { operation } = await own.ok('vmCreate', { body: vmBody() })
  await eventually(async () => {
    const [row] = await own.sql(
      `SELECT FROM operation_queue WHERE run_at > slipway_now() + interval '1 hour'`,
    )
    return row
  })
  // Well before the deadline nothing happens. After it, the boot has failed.
  await own.clock.advance('10 minutes')
  const before = await own.ok('operationGet', { params: { operation_id: operation.operation_id } })
  expect(before.state).toBe('IN_PROGRESS')
  await own.clock.advance('10 hours')
  await own.sql(`UPDATE simulated_vms SET ready_at = slipway_now() + interval '10 hours'`)
  expect(await own.ended(operation.operation_id)).toMatchObject({
    state: 'FAILED',
    result: { code: 'boot_failed' },
  })
  expect((await own.ok('vmList')).items).toEqual([])
  await settle(own)
  await checkInvariants(own)
})

test('a guest that does not shut down is powered off after ninety seconds', async () => {
  const id = await resources.newVm({ shutdown_script: '#!/bin/sh\nsleep 3600\n' })
  const { operation } = await resources.act(id, { action: 'STOP' })
  const isStopping = async () => (await service.simulator().inspectVm({ id, host: '' }))?.power === 'stopping'
  await eventually(isStopping)
  await eventually(async () => {
    const [row] = await service.sql(`SELECT FROM operations WHERE id = $1 AND scratch ? 'askedAtMs'`, [
      operation.operation_id,
    ])
    return row
  })
  await service.clock.advance('60 seconds')
  expect(await isStopping()).toBe(true)
  expect(await resources.stateOf(id)).toBe('STATE_STOPPING')
  await service.clock.advance('31 seconds')
  expect(await service.ended(operation.operation_id)).toMatchObject({
    state: 'SUCCEEDED',
    result: { state: 'STATE_SHUTOFF' },
  })
})

test.each([
  ['RUNNING', 'STATE_RUNNING', async () => {}],
  ['CRASHED', 'STATE_CRASHED', async (id: string) => service.simulator().crashVm(id)],
  [
    'SHUTOFF',
    'STATE_SHUTOFF',
    async (id: string) => {
      await service.sql(`UPDATE simulated_vms SET power = 'off' WHERE id = $1`, [id])
    },
  ],
])(
  'VMs of a silent host are unreachable, and have the state that inspection finds when it is back: %s',
  async (_, state, meanwhile) => {
    const id = await resources.newVm()
    const host = await hostOf(id)
    await lose(host)
    await until(id, 'STATE_UNREACHABLE')
    expect(await service.sql('SELECT FROM usage_intervals WHERE upper_inf(period)')).toEqual([])
    expect(await gpuCounts()).toMatchObject({ claimed: 1 })
    const refused = await service.call('vmUpdate', { params: { vm_id: id }, body: { action: 'STOP' } })
    expect(refused.status).toBe(409)
    await meanwhile(id)
    await bringBack(host)
    await until(id, state)
  },
)

test('a VM of a silent host can be deleted: name and quota are free immediately, the rest when the host is back', async () => {
  const disk = await resources.newDisk()
  const body = vmBody({ disks: [{ disk_id: disk }] })
  const id = await resources.succeeded(await service.ok('vmCreate', { body }))
  const vm = await service.ok('vmGet', { params: { vm_id: id } })
  const host = await hostOf(id)
  await lose(host)
  await until(id, 'STATE_UNREACHABLE')
  await resources.succeeded(await resources.removeVm(id))
  expect((await service.call('vmGet', { params: { vm_id: id } })).status).toBe(404)
  const { items } = await service.ok('quotaList')
  expect(items.filter(({ name, used }) => used > 0 && /gpus|vms/.test(name))).toEqual([])
  const successor = await resources.newVm({ name: body.name })
  const address = vm.network_interfaces[0]!.ips[0]!.public_ipv4.address
  expect(await service.sql('SELECT FROM vms WHERE public_address = $1', [address])).toHaveLength(1)
  expect(await gpuCounts()).toEqual({ claimed: 1, quarantined: 1 })
  expect((await service.call('diskDelete', { params: { disk_id: disk } })).status).toBe(409)

  await bringBack(host)
  await eventually(async () => {
    await service.server.reconciler.reports()
    return (await service.sql('SELECT FROM vms WHERE id = $1', [id])).length === 0
  })
  await settle(service)
  expect(await gpuCounts()).toEqual({ claimed: 1 })
  expect(await service.simulator().inspectVm({ id, host })).toBeNull()
  await resources.succeeded(await resources.removeDisk(disk))
  await resources.succeeded(await resources.removeVm(successor))
})

test('a deletion waits while a silent host is not yet marked as lost', async () => {
  const id = await resources.newVm()
  const host = await hostOf(id)
  await service.simulator().setHostLost(host, true)
  const { operation } = await resources.removeVm(id)
  await eventually(async () => {
    const [row] = await service.sql('SELECT FROM operations WHERE id = $1 AND attempts > 0', [
      operation.operation_id,
    ])
    return row
  })
  await service.clock.advance('31 seconds')
  expect(await service.ended(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  await bringBack(host)
  await eventually(async () => {
    await service.server.reconciler.reports()
    return (await service.sql('SELECT FROM vms')).length === 0
  })
})

test('a crashed VM keeps its GPUs and can be reset', async () => {
  const id = await resources.newVm()
  await service.simulator().crashVm(id)
  await until(id, 'STATE_CRASHED')
  expect(await gpuCounts()).toMatchObject({ claimed: 1 })
  await resources.succeeded(await resources.act(id, { action: 'RESET' }))
  expect(await resources.stateOf(id)).toBe('STATE_RUNNING')
})

test('a VM that powers off from inside counts as crashed and can be stopped', async () => {
  const id = await resources.newVm()
  await service.sql(`UPDATE simulated_vms SET power = 'off' WHERE id = $1`, [id])
  await until(id, 'STATE_CRASHED')
  await resources.succeeded(await resources.act(id, { action: 'STOP' }))
  expect(await resources.stateOf(id)).toBe('STATE_SHUTOFF')
})

test('a VM that runs although it should be off is turned off', async () => {
  const id = await resources.newVm()
  await resources.succeeded(await resources.act(id, { action: 'STOP' }))
  await service.sql(`UPDATE simulated_vms SET power = 'on', ready_at = slipway_now() WHERE id = $1`, [id])
  await eventually(async () => {
    await service.server.reconciler.reports()
    return (await service.simulator().inspectVm({ id, host: '' }))?.power === 'off'
  })
  expect(await resources.stateOf(id)).toBe('STATE_SHUTOFF')
})

test('the expiry of a VM is announced, then the VM is stopped or deleted', async () => {
  const stops = await resources.newVm({ ttl_seconds: 3600 })
  const goes = await resources.newVm({ ttl_seconds: 3600, on_expiry: 'delete' })
  await service.clock.advance('51 minutes')
  await service.server.reconciler.expiry()
  expect(await service.sql(`SELECT FROM events_written WHERE type = 'vm.expiring'`)).toHaveLength(2)
  await service.clock.advance('10 minutes')
  await service.server.reconciler.expiry()
  await until(stops, 'STATE_SHUTOFF')
  await eventually(async () => (await service.call('vmGet', { params: { vm_id: goes } })).status === 404)
})

const isThere = async (id: string) => (await service.simulator().inspectVm({ id, host: '' })) !== null

test('a resource that only the engine has is removed immediately if the service created it', async () => {
  const id = await resources.newVm()
  await resources.succeeded(await resources.removeVm(id))
  await service.sql('UPDATE simulated_vms SET is_removed = false WHERE id = $1', [id])
  expect(await isThere(id)).toBe(true)
  await eventually(async () => {
    await service.server.reconciler.reports()
    return !(await isThere(id))
  })
})

test('a resource that only the engine has is removed after an hour if the service never knew it', async () => {
  const id = uuid()
  await addStrayVm(service.database, id)
  await service.server.reconciler.reports()
  await service.clock.advance('59 minutes')
  await service.server.reconciler.reports()
  expect(await isThere(id)).toBe(true)
  await service.clock.advance('2 minutes')
  await service.server.reconciler.reports()
  expect(await isThere(id)).toBe(false)
})

const count = async (table: string) =>
  (await service.sql<{ count: number }>(`SELECT count(*)::int AS count FROM ${table}`))[0]!.count

test('operations and events are kept for ninety days', async () => {
  await resources.succeeded(await resources.removeDisk(await resources.newDisk()))
  await eventually(async () => (await service.sql('SELECT FROM events_pending')).length === 0)
  const [operations, events] = [await count('operations'), await count('events')]
  await service.clock.advance('89 days')
  await service.server.reconciler.prune()
  expect(await count('operations')).toBe(operations)
  expect(await count('events')).toBeGreaterThanOrEqual(events)
  await service.clock.advance('2 days')
  await service.server.reconciler.prune()
  expect(await count('operations')).toBe(0)
  expect(await oldEvents()).toBe(0)
})

const oldEvents = async () =>
  (await service.sql(`SELECT FROM events_written WHERE created_at < slipway_now() - interval '90 days'`))
    .length

test('retention removes all expired rows in one run', async () => {
  // The test runs retention itself, because two concurrent runs would each leave rows to the other.
  await eventually(async () => {
    await service.clock.advance('2 minutes')
    return takeLease(service.database, { name: 'retention', holder: uuid(), ms: 1_800_000 })
  })
  const old = `slipway_now() - interval '91 days'`
  const project = service.credentials.project_id
  await service.sql(
    `WITH top AS (UPDATE event_counter SET last_position = last_position + 3500 RETURNING last_position - 3500 AS base)
     INSERT INTO events (id, position, project_id, type, resource_type, resource_id, actor, request_id, created_at)
     SELECT gen_random_uuid(), base + n, $1, 'vm.running', 'vm', '', 'system', '', ${old} FROM top, generate_series(1, 3500) n`,
    [project],
  )
  await service.sql(
    `INSERT INTO operations (id, project_id, kind, name, resource_type, resource_id, generation, request, state,
       actor, request_id, completed_at)
     SELECT gen_random_uuid(), $1, 'vm-stop', 'STOP', 'vm', gen_random_uuid(), 1, '{}', 'SUCCEEDED', 'system', '', ${old}
     FROM generate_series(1, 2500)`,
    [project],
  )
  await service.sql(
    `INSERT INTO idempotency_keys (caller, key_hash, request_hash, answer_sealed, created_at)
     SELECT 'x', int4send(n), '', '', ${old} FROM generate_series(1, 2500) n`,
  )
  await service.sql(
    `INSERT INTO access_keys (id, kind, project_id, name, role, prefix, secret_hash, revoked_at)
     SELECT gen_random_uuid(), 'project', $1, 'revoked', 'read', '', int4send(n), slipway_now() - n * interval '1 day'
     FROM generate_series(89, 92) n`,
    [project],
  )
  await service.server.reconciler.prune()
  expect(await service.sql(`SELECT FROM access_keys WHERE name = 'revoked'`)).toHaveLength(1)
  expect(await oldEvents()).toBe(0)
  const [operations] = await service.sql<{ count: number }>(
    `SELECT count(*)::int AS count FROM operations WHERE completed_at <= ${old}`,
  )
  expect(operations!.count).toBe(0)
  expect(await service.sql(`SELECT FROM idempotency_keys WHERE caller = 'x'`)).toEqual([])
})

test('an idempotency key is kept for a day, and so is its response', async () => {
  const body = { name: 'once', size: '1GiB', location: 'us-east1-a' }
  const headers = { 'idempotency-key': 'a-day' }
  const first = await service.ok('diskCreate', { body, headers })
  await resources.ended(first)
  const again = await service.call('diskCreate', { body, headers })
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  await service.clock.advance('25 hours')
  expect((await service.call('diskCreate', { body, headers })).status).toBe(409)
  await service.server.reconciler.prune()
  expect(await count('idempotency_keys')).toBe(0)
})

test('expired tokens are deleted', async () => {
  const [user] = await service.sql<{ id: string }>('SELECT id FROM users LIMIT 1')
  await tokenOf(service.database, user!)
  expect(await count('access_tokens')).toBeGreaterThan(0)
  await service.clock.advance('40 days')
  await service.server.reconciler.prune()
  expect([await count('access_tokens'), await count('refresh_tokens')]).toEqual([0, 0])
})

test('a draining host is drained when its last VM is removed', async () => {
  const token = service.credentials.operator_key
  const id = await resources.newVm()
  const host = await hostOf(id)
  const { items } = await service.ok('adminHostList', { token, query: { limit: 500 } })
  const host_id = items.find((one) => one.name === host && one.location === 'us-east1-a')!.id
  await service.ok('adminHostDrain', { token, params: { host_id } })
  await settle(service)
  const read = () => service.ok('adminHostGet', { token, params: { host_id } })
  const events = await service.ok('adminEventList', { token, query: { type: 'host.draining' } })
  const { created_at: draining_since } = events.items.find(({ project_id }) => project_id === '')!
  expect(await read()).toMatchObject({ state: 'draining', draining_since, vms_at_drain: 1 })
  expect(await resources.stateOf(id)).toBe('STATE_RUNNING')
  await resources.succeeded(await resources.removeVm(id))
  await settle(service)
  expect(await read()).toMatchObject({ state: 'drained', draining_since: '', vms_at_drain: 0 })
})
