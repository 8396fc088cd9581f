import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { definitions } from '../../src/operations/index.ts'
import { Runner } from '../../src/runner/runner.ts'
import type { Services } from '../../src/services.ts'
import type { SimulatedFault } from '../../src/store/simulated/objects.ts'

/**
 * A short time limit makes tests with a hanging engine fast. Other tests keep the long one, because a slow machine must
 * not look like a hanging engine.
 */
const shortLimitMs = 150
let service: TestService
let resources: ReturnType<typeof resourcesOf>
let runner: Runner
let workerServices: Services
/** Errors that no engine fault may cause. */
const errors: string[] = []

beforeAll(async () => {
  service = await startService((config) => {
    config.server.role = 'api'
  })
  resources = resourcesOf(service)
  const log = { info() {}, warn() {}, error: (_: object, message: string) => errors.push(message) }
  workerServices = { ...service.server.services, log }
  runner = new Runner(workerServices, definitions)
  runner.start()
  await settle(service)
})
afterAll(async () => {
  await runner.stop()
  await service.close()
})
afterEach(async () => {
  expect(errors.splice(0)).toEqual([])
  delete workerServices.stepMs
  await resources.clear()
  for (const { id, name } of (await service.ok('firewallRuleList')).items)
    if (name.startsWith('rule-')) await resources.succeeded(await resources.removeRule(id))
})

type OperationResponse = { operation: { operation_id: string; metadata: { id: string } } }
const newStoppedVm = async () => {
  const id = await resources.newVm()
  await resources.succeeded(await resources.act(id, { action: 'STOP' }))
  return id
}

let count = 0
const snapshotOf = (disk_id: string) =>
  service.ok('snapshotCreate', { body: { name: `snapshot-${++count}`, disk_id } })
const newSnapshot = async () => resources.succeeded(await snapshotOf(await resources.newDisk()))

/** The engine calls of each kind of operation, and how the operation is started. */
const scenarios: Record<
  string,
  { methods: string[]; prepare: () => Promise<() => Promise<OperationResponse>> }
> = {
  'vm-create': {
    methods: ['ensureVm', 'inspectVm'],
    prepare: async () => {
      const disk_id = await resources.newDisk()
      return () => resources.createVm({ disks: [{ disk_id }] })
    },
  },
  'vm-start': {
    methods: ['ensureVm', 'inspectVm'],
    prepare: async () => {
      const id = await newStoppedVm()
      return () => resources.act(id, { action: 'START' })
    },
  },
  'vm-stop': {
    methods: ['powerVm', 'inspectVm'],
    prepare: async () => {
      const id = await resources.newVm()
      return () => resources.act(id, { action: 'STOP' })
    },
  },
  'vm-reset': {
    methods: ['powerVm', 'ensureVm', 'inspectVm'],
    prepare: async () => {
      const id = await resources.newVm()
      return () => resources.act(id, { action: 'RESET' })
    },
  },
  'vm-replace': {
    methods: ['powerVm', 'ensureVm', 'inspectVm'],
    prepare: async () => {
      const id = await resources.newVm()
      return () => resources.act(id, { action: 'REPLACE' })
    },
  },
  'vm-attach-disks': {
    methods: ['attachDisk', 'inspectVm'],
    prepare: async () => {
      const [vm, disk] = [await resources.newVm(), await resources.newDisk()]
      return () => resources.attach(vm, disk)
    },
  },
  'vm-detach-disks': {
    methods: ['detachDisk', 'inspectVm'],
    prepare: async () => {
      const [vm, disk] = [await resources.newVm(), await resources.newDisk()]
      await resources.succeeded(await resources.attach(vm, disk))
      return () => resources.detach(vm, disk)
    },
  },
  'vm-readdress': {
    methods: ['setPublicAddress', 'inspectVm'],
    prepare: async () => {
      const [vm, { id }] = [await resources.newVm(), await resources.spareAddress()]
      return () => resources.assign(id, vm)
    },
  },
  'vm-delete': {
    methods: ['removeVm', 'inspectVm'],
    prepare: async () => {
      const id = await resources.newVm()
      return () => resources.removeVm(id)
    },
  },
  'disk-create': {
    methods: ['ensureDisk', 'inspectDisk'],
    prepare: async () => () => resources.createDisk(),
  },
  'disk-resize': {
    methods: ['growDisk', 'inspectDisk'],
    prepare: async () => {
      const id = await resources.newDisk()
      return () => resources.grow(id, '20GiB')
    },
  },
  'disk-delete': {
    methods: ['removeDisk', 'inspectDisk'],
    prepare: async () => {
      const id = await resources.newDisk()
      return () => resources.removeDisk(id)
    },
  },
  'disk-restore': {
    methods: ['ensureDisk', 'inspectDisk'],
    prepare: async () => {
      const snapshot_id = await newSnapshot()
      return () => service.ok('diskCreate', { body: { name: `restored-${++count}`, snapshot_id } })
    },
  },
  'snapshot-create': {
    methods: ['capture', 'inspectCapture'],
    prepare: async () => {
      const disk_id = await resources.newDisk()
      return () => snapshotOf(disk_id)
    },
  },
  'snapshot-delete': {
    methods: ['removeCapture', 'inspectCapture'],
    prepare: async () => {
      const snapshot_id = await newSnapshot()
      return () => service.ok('snapshotDelete', { params: { snapshot_id } })
    },
  },
  'custom-image-create': {
    methods: ['capture', 'inspectCapture'],
    prepare: async () => {
      const vm_id = await newStoppedVm()
      return () => service.ok('customImageCreate', { body: { name: `image-${++count}`, vm_id } })
    },
  },
  'custom-image-delete': {
    methods: ['removeCapture', 'inspectCapture'],
    prepare: async () => {
      const body = { name: `image-${++count}`, snapshot_id: await newSnapshot() }
      const custom_image_id = await resources.succeeded(await service.ok('customImageCreate', { body }))
      return () => service.ok('customImageDelete', { params: { custom_image_id } })
    },
  },
  'firewall-rule-create': {
    methods: ['applyFirewall', 'inspectVm'],
    prepare: async () => {
      await resources.newVm()
      return () => resources.createRule()
    },
  },
  'firewall-rule-update': {
    methods: ['applyFirewall', 'inspectVm'],
    prepare: async () => {
      const [rule] = [await resources.newRule(), await resources.newVm()]
      return () => resources.changeRule(rule, { destination_ports: ['9999'] })
    },
  },
  'firewall-rule-delete': {
    methods: ['applyFirewall', 'inspectVm'],
    prepare: async () => {
      const [rule] = [await resources.newRule(), await resources.newVm()]
      return () => resources.removeRule(rule)
    },
  },
}

/** Only calls that make changes can be forgotten or falsely reported as done. */
const faults: { fault: string; kind: SimulatedFault['kind']; delayMs: number; times: number }[] = [
  { fault: 'hangs', kind: 'delay', delayMs: shortLimitMs * 2, times: 1 },
  { fault: 'fails twice and then works', kind: 'fail', delayMs: 0, times: 2 },
  { fault: 'returns an error after doing the work', kind: 'lie', delayMs: 0, times: 1 },
  { fault: 'returns success and does nothing', kind: 'forget', delayMs: 0, times: 1 },
  { fault: 'rejects the call', kind: 'reject', delayMs: 0, times: 1 },
]

test('there is a fault scenario for every kind of operation that calls an engine', () => {
  // The deletion of a group only waits for other operations.
  const callsEngine = ({ steps }: (typeof definitions)[number]) =>
    steps.some(({ name, call }) => call && name !== 'wait_for_cancelled')
  const asking = definitions.filter(callsEngine).map(({ kind }) => kind)
  expect(Object.keys(scenarios).sort()).toEqual(asking.sort())
})

const plan = Object.entries(scenarios).flatMap(([kind, { methods, prepare }]) =>
  methods.flatMap((method) =>
    faults
      .filter((fault) => !method.startsWith('inspect') || fault.kind === 'fail' || fault.kind === 'delay')
      .map((fault) => ({ ...fault, operation: kind, method, prepare, what: fault.kind })),
  ),
)
// A rejected firewall is retried until the deadline, because other VMs of the network must get their rules.
const isRefusalFinal = ({ operation, method, what }: (typeof plan)[number]) =>
  what === 'reject' &&
  !operation.endsWith('-delete') &&
  !(operation.startsWith('firewall') && method === 'applyFirewall')

test.each(plan)('$operation ends consistently with an engine that $fault at $method', async (given) => {
  const begin = await given.prepare()
  const { method, what: kind, delayMs, times } = given
  if (kind === 'delay') workerServices.stepMs = shortLimitMs
  await service.simulator().addFault({ method, kind, delayMs, times })
  const { operation } = await begin()
  const ended = await service.advanceUntilEnded(operation.operation_id)
  if (isRefusalFinal(given))
    expect(ended).toMatchObject({ state: 'FAILED', result: { code: 'engine_error' } })
  else expect(ended, JSON.stringify(ended)).toMatchObject({ state: 'SUCCEEDED' })
  await service.simulator().clearFaults()
  await settle(service)
  await checkInvariants(service)
})

test.each([1, 2, 3, 4])('a VM is created by an engine that forgot %d definitions before', async (times) => {
  await service.simulator().addFault({ method: 'ensureVm', kind: 'forget', times })
  await resources.newVm()
  await settle(service)
  await checkInvariants(service)
})

test('an engine that repeatedly forgets to shut down a guest is called until it does, without a power cut', async () => {
  const vm_id = await resources.newVm()
  await service.simulator().addFault({ method: 'powerVm', kind: 'forget', times: 5 })
  const { operation } = await resources.act(vm_id, { action: 'STOP' })
  expect(await service.advanceUntilEnded(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  const { content } = await service.ok('vmSerialLog', { params: { vm_id } })
  expect(content).toContain('Reached target Power-Off')
})

const makeStuck = async () => {
  const simulator = service.simulator()
  await simulator.addFault({ method: 'ensureVm', kind: 'reject' })
  await simulator.addFault({ method: 'removeVm', kind: 'fail', times: 1000 })
  const { operation } = await resources.createVm()
  await eventually(async () => {
    const [row] = await service.sql<{ is_stuck: boolean }>('SELECT is_stuck FROM operations WHERE id = $1', [
      operation.operation_id,
    ])
    if (row!.is_stuck) return true
    // Pauses grow to half a minute. One statement makes the next attempt due, so that no running attempt is affected.
    await service.sql(
      `UPDATE operation_queue SET run_at = slipway_now() FROM operations
       WHERE operation_id = $1 AND id = $1 AND lease_token IS NULL AND NOT is_stuck AND run_at > slipway_now()`,
      [operation.operation_id],
    )
    service.server.services.signals.send('operations')
    return false
  })
  return operation
}
const token = () => service.credentials.operator_key

test('an undo that fails is shown to operators, in metrics and in events, and resumes on request', async () => {
  const { operation_id, metadata } = await makeStuck()
  const { items } = await service.ok('adminOperationList', { token: token(), query: { stuck: true } })
  expect(items.map((item) => [item.operation_id, item.is_stuck])).toEqual([[operation_id, true]])
  expect(items[0]!.resource_name).toBe(metadata.request.name)
  expect(items[0]!.error).toContain('removeVm failed')
  const metrics = String((await service.request('GET', '/metrics')).body)
  expect(metrics).toMatch(/slipway_operations_stuck\S* 1\n/)
  const stuckEvents = await service.sql(
    `SELECT FROM events_written WHERE type = 'operation.stuck' AND resource_id = $1`,
    [metadata.id],
  )
  expect(stuckEvents).toHaveLength(1)
  await service.simulator().clearFaults()
  await service.ok('adminOperationRetry', { token: token(), params: { operation_id } })
  expect(await service.ended(operation_id)).toMatchObject({
    state: 'FAILED',
    result: { code: 'engine_error' },
  })
  expect((await service.call('vmGet', { params: { vm_id: metadata.id } })).status).toBe(404)
  await settle(service)
  await checkInvariants(service)
})

test('an undo that fails can be abandoned, and the VM can be deleted afterwards', async () => {
  const { operation_id, metadata } = await makeStuck()
  await service.ok('adminOperationAbandon', { token: token(), params: { operation_id } })
  expect((await service.ended(operation_id)).state).toBe('FAILED')
  const again = await service.call('adminOperationRetry', { token: token(), params: { operation_id } })
  expect(again.status).toBe(409)
  await service.simulator().clearFaults()
  await resources.succeeded(await resources.removeVm(metadata.id))
  await settle(service)
  await checkInvariants(service)
})

test('the engine rejects late calls of a failed start', async () => {
  const id = await newStoppedVm()
  const simulator = service.simulator()
  const [vm] = await service.sql<{ generation: number }>('SELECT generation FROM vms WHERE id = $1', [id])
  await simulator.addFault({ method: 'ensureVm', resourceId: id, kind: 'reject' })
  expect(await resources.ended(await resources.act(id, { action: 'START' }))).toMatchObject({
    state: 'FAILED',
  })
  const call = { generation: vm!.generation + 1, signal: AbortSignal.timeout(1_000) }
  await expect(simulator.powerVm({ id, host: '' }, 'reset', call)).rejects.toMatchObject({ kind: 'stale' })
  await settle(service)
  expect(await resources.stateOf(id)).toBe('STATE_SHUTOFF')
  await checkInvariants(service)
})

test('a fence that deadlocks with an admission is retried', async () => {
  const id = await resources.newVm()
  await service.simulator().addFault({ method: 'powerVm', kind: 'fail', times: 1000 })
  const stop = await resources.act(id, { action: 'STOP' })
  const admission = new pg.Client(service.databaseUrl)
  await admission.connect()
  await admission.query('BEGIN')
  await admission.query('SELECT FROM vms WHERE id = $1 FOR UPDATE', [id])
  await eventually(async () => {
    const waiting = await service.sql(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%fenced AS%'`,
    )
    return waiting.length === 1
  })
  // The fence has waited longer, so PostgreSQL aborts it, unless this machine paused for a second.
  const second = admission.query('SELECT FROM operation_queue WHERE resource_id = $1 FOR UPDATE', [id])
  await second.catch((error) => expect(error.code).toBe('40P01'))
  await admission.query('COMMIT')
  await admission.end()
  await service.simulator().clearFaults()
  await resources.succeeded(stop)
  await checkInvariants(service)
})
