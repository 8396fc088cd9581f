import { growRows } from '@slipway/testing/grow-rows.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addTenants } from '../../bench/fixtures.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

test('a database filled by the benchmark satisfies every invariant, and its VMs can be deleted', async () => {
  const { newVm, act, succeeded } = resourcesOf(service)
  const templates = { running: await newVm(), shutOff: await newVm() }
  await succeeded(await act(templates.shutOff, { action: 'STOP' }))
  const [{ projectId, token } = { projectId: '', token: '' }] = await addTenants(
    service.database,
    'grown',
    1,
    1,
  )
  const size = { vms: 60, operations: 600, events: 2_400 }
  const where = { after: 0, location: 'us-east1-a', projectIds: [projectId], templates }
  await growRows(service.database, { ...size, ...where })
  await settle(service)
  await checkInvariants(service)
  const [counts] = await service.sql(
    `SELECT (SELECT count(*)::int FROM vms WHERE project_id = $1) AS vms,
            (SELECT count(*)::int FROM operations WHERE project_id = $1) AS operations,
            (SELECT count(*)::int FROM events WHERE project_id = $1) AS events`,
    [projectId],
  )
  expect(counts).toMatchObject({ vms: size.vms, operations: size.operations })
  expect(counts!.events).toBeGreaterThanOrEqual(size.events)

  const params = { project_id: projectId }
  const states = ['STATE_RUNNING', 'STATE_SHUTOFF'] as const
  for (const state of states) {
    const { items } = await service.ok('vmList', { params, token, query: { states: state, limit: 1 } })
    const { operation } = await service.ok('vmDelete', { params: { ...params, vm_id: items[0]!.id }, token })
    const read = { params: { ...params, operation_id: operation.operation_id }, query: { wait: 30 }, token }
    expect(await service.ok('operationGet', read)).toMatchObject({ state: 'SUCCEEDED' })
  }
  await settle(service)
  await checkInvariants(service)
})
