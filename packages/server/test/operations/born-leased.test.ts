import { randomUUID } from 'node:crypto'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { definitions } from '../../src/operations/index.ts'
import { Runner } from '../../src/runner/runner.ts'
import { offerSlots } from '../../src/runner/slots.ts'
import type { Services } from '../../src/services.ts'
import { holdCalls } from '../support/held-calls.ts'

let service: TestService
let resources: ReturnType<typeof resourcesOf>

beforeAll(async () => {
  // No worker claims operations: they start with a lease, or a worker of the test runs them.
  service = await startService((config) => {
    config.server.role = 'api'
  })
  resources = resourcesOf(service)
  await settle(service)
})
afterAll(() => service.close())

function runnerWith(concurrency: number): Runner {
  const own: Services = service.server.services
  const operations = { ...own.config.operations, concurrency }
  return new Runner({ ...own, config: { ...own.config, operations } }, definitions)
}

const leases = () =>
  service.sql<{ operation_id: string; lease_token: string | null }>(
    'SELECT operation_id, lease_token FROM operation_queue ORDER BY operation_id',
  )

test('an operation starts without being claimed if its own process has a free slot', async () => {
  offerSlots(service.server.services.database, runnerWith(1))
  await resources.succeeded(await resources.createVm())
  expect(await leases()).toEqual([])
  await checkInvariants(service)
})

test('a refused admission leaves its slot to the next operation', async () => {
  offerSlots(service.server.services.database, runnerWith(1))
  const [quota] = await service.sql<{ max: number }>(`SELECT max::int FROM quotas WHERE name = 'vms'`)
  await service.sql(`UPDATE quotas SET max = used WHERE name = 'vms'`)
  const refused = await service.call('vmCreate', { body: vmBody() })
  expect(refused.status).toBe(403)
  await service.sql(`UPDATE quotas SET max = $1 WHERE name = 'vms'`, [quota!.max])
  await resources.succeeded(await resources.createVm())
})

test('an operation without a slot in its own process can be claimed by every worker', async () => {
  offerSlots(service.server.services.database, runnerWith(1))
  const { called, release } = holdCalls(service.simulator(), 'ensureDisk')
  const first = await resources.createDisk()
  await called
  const second = await resources.createDisk()
  expect(await leases()).toMatchObject([
    { operation_id: first.operation.operation_id, lease_token: expect.any(String) },
    { operation_id: second.operation.operation_id, lease_token: null },
  ])
  release()
  const other = runnerWith(8)
  other.start()
  await resources.succeeded(first)
  await resources.succeeded(second)
  await other.stop()
})

test('an operation whose process dies right after the admission is fenced and taken over by another process', async () => {
  const token = randomUUID()
  offerSlots(service.server.services.database, {
    reserve: () => ({ lease: { token, ms: 10_000 }, fill() {}, close() {} }),
  })
  const accepted = await resources.createVm()
  expect(await leases()).toMatchObject([{ lease_token: token }])
  const other = runnerWith(8)
  other.start()
  await service.clock.advance('11 seconds')
  await resources.succeeded(accepted)
  await other.stop()
  const [row] = await service.sql('SELECT generation::int FROM operations WHERE id = $1', [
    accepted.operation.operation_id,
  ])
  expect(row).toEqual({ generation: 2 })
  await settle(service)
  await checkInvariants(service)
})
