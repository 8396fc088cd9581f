import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService, useService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
beforeAll(async () => {
  service = await startService()
  resources = resourcesOf(service)
  await settle(service)
})
afterAll(() => service.close())
afterEach(async () => {
  await resources.clear()
  await settle(service)
  await checkInvariants(service)
})

type OperationResponse = { operation: { operation_id: string; metadata: { id: string } } }

/** Marks the operation as stuck after its first failed attempt, and returns its id. */
async function makeStuck({ operation }: OperationResponse): Promise<string> {
  await eventually(async () => {
    const rows = await service.sql(
      `WITH parked AS (
         UPDATE operation_queue SET run_at = slipway_now() + interval '5 minutes' FROM operations
         WHERE operation_id = $1 AND id = $1 AND attempts > 0 AND lease_token IS NULL RETURNING operation_id)
       UPDATE operations SET is_stuck = true FROM parked WHERE id = operation_id RETURNING id`,
      [operation.operation_id],
    )
    return rows.length === 1
  })
  return operation.operation_id
}
const abandon = (operation_id: string) =>
  service.ok('adminOperationAbandon', {
    token: service.credentials.operator_key,
    params: { operation_id },
  })
const used = async (name: string) =>
  (await service.ok('quotaList')).items.find((each) => each.name === name)!.used

test('a VM whose start is abandoned ends shut off and without GPUs', async () => {
  const id = await resources.newVm()
  await resources.succeeded(await resources.act(id, { action: 'STOP' }))
  const simulator = service.simulator()
  await simulator.addFault({ method: 'ensureVm', resourceId: id, kind: 'fail', times: 1000 })
  const operationId = await makeStuck(await resources.act(id, { action: 'START' }))
  await abandon(operationId)
  expect(await service.ended(operationId)).toMatchObject({ state: 'FAILED' })
  await simulator.clearFaults()
  await service.server.reconciler.reports()
  expect(await resources.stateOf(id)).toBe('STATE_SHUTOFF')
  expect(await used('a100_gpus')).toBe(0)
  await resources.succeeded(await resources.act(id, { action: 'START' }))
})

test('a VM whose stop is abandoned shows the state that inspection finds', async () => {
  const id = await resources.newVm()
  const simulator = service.simulator()
  await simulator.addFault({ method: 'powerVm', resourceId: id, kind: 'fail', times: 1000 })
  const accepted = await resources.act(id, { action: 'STOP' })
  await abandon(await makeStuck(accepted))
  await simulator.clearFaults()
  await service.server.reconciler.reports()
  expect(await resources.stateOf(id)).toBe('STATE_RUNNING')
})

test('a VM whose creation is abandoned can be deleted as soon as its engine allows it', async () => {
  const simulator = service.simulator()
  await simulator.addFault({ method: 'ensureVm', kind: 'reject' })
  await simulator.addFault({ method: 'removeVm', kind: 'fail', times: 1000 })
  const accepted = await resources.createVm()
  const { id } = accepted.operation.metadata
  await abandon(await makeStuck(accepted))
  expect(await resources.stateOf(id)).toBe('STATE_DELETING')
  // Sent before the engine allows it, because then a periodic task may remove the VM at any time.
  const { operation } = await resources.removeVm(id)
  await simulator.clearFaults()
  expect(await service.advanceUntilEnded(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect((await service.call('vmGet', { params: { vm_id: id } })).status).toBe(404)
})

test('a VM whose deletion is abandoned is hidden, and its GPUs stay unavailable until it is removed', async () => {
  const id = await resources.newVm()
  const simulator = service.simulator()
  await simulator.addFault({ method: 'removeVm', resourceId: id, kind: 'fail', times: 1000 })
  const accepted = await resources.removeVm(id)
  await abandon(await makeStuck(accepted))
  expect((await service.call('vmGet', { params: { vm_id: id } })).status).toBe(404)
  await service.server.reconciler.reports()
  expect(await service.sql(`SELECT state FROM gpus WHERE state <> 'free'`)).toEqual([
    { state: 'quarantined' },
  ])
  expect(await used('vms')).toBe(0)
  await simulator.clearFaults()
  await service.server.reconciler.reports()
  expect(await service.sql('SELECT FROM vms WHERE id = $1', [id])).toEqual([])
})

test('an abandoned growth of a disk returns its quota', async () => {
  const id = await resources.newDisk()
  await service.simulator().addFault({ method: 'growDisk', kind: 'fail', times: 1000 })
  const accepted = await resources.grow(id, '20GiB')
  await abandon(await makeStuck(accepted))
  expect(await service.ok('diskGet', { params: { disk_id: id } })).toMatchObject({
    state: 'available',
    size: '10GiB',
  })
  expect(await used('disk_gib')).toBe(10)
})

test('the failed step is still shown as failed after all steps are undone', async () => {
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject' })
  const { operation } = await resources.createVm()
  const { operation_id } = operation
  expect(await service.ended(operation_id)).toMatchObject({ state: 'FAILED' })
  const { items } = await service.ok('operationSteps', { params: { operation_id } })
  expect(items.map(({ name, state }) => [name, state])).toEqual([
    ['admit', 'undone'],
    ['boot', 'failed'],
    ['finish', 'pending'],
  ])
})

test('a guest that dies during boot is noticed when its engine reports it, not at the deadline', async () => {
  const slow = await useService((config) => {
    for (const location of config.locations)
      if (location.engine === 'simulated') location.simulated.bootMs = [3_600_000, 3_600_000]
  })
  const { operation } = await resourcesOf(slow).createVm()
  const { id } = operation.metadata
  await eventually(async () => {
    const [row] = await slow.sql<{ is_parked: boolean }>(
      `SELECT lease_token IS NULL AND run_at > slipway_now() + interval '1 minute' AS is_parked
       FROM operation_queue WHERE operation_id = $1`,
      [operation.operation_id],
    )
    return row!.is_parked
  })
  await slow.simulator().crashVm(id)
  expect(await slow.ended(operation.operation_id)).toMatchObject({ result: { code: 'boot_failed' } })
})

test('an operator sees that a retried operation goes on failing', async () => {
  const id = await resources.newVm()
  const simulator = service.simulator()
  await simulator.addFault({ method: 'removeVm', resourceId: id, kind: 'fail', times: 1000 })
  const operation_id = await makeStuck(await resources.removeVm(id))
  const token = service.credentials.operator_key
  const read = () => service.ok('adminOperationGet', { token, params: { operation_id } })
  const stuck = await read()
  expect(stuck).toMatchObject({ is_stuck: true, state: 'IN_PROGRESS', step: 'remove' })
  expect(Date.parse(stuck.next_attempt_at)).toBeGreaterThan(Date.parse(stuck.started_at))
  expect(stuck.steps[0]).toMatchObject({ state: 'done', started_at: expect.stringMatching(/Z$/) })
  expect(stuck.steps.at(-1)).toMatchObject({ state: 'pending', started_at: '' })

  const retried = await service.ok('adminOperationRetry', { token, params: { operation_id } })
  expect(retried).toMatchObject({ is_stuck: false, attempts: 0 })
  await eventually(async () => (await read()).attempts > 0)
  expect(await read()).toMatchObject({ error: expect.stringContaining('removeVm'), result: null })

  await simulator.clearFaults()
  await service.advanceUntilEnded(operation_id)
  expect(await read()).toMatchObject({ state: 'SUCCEEDED', is_stuck: false, next_attempt_at: '' })
})
