import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { useService } from '@slipway/testing/service.ts'
import { expect, test } from 'vitest'

test('a worker without the engine of a location leaves its operations to one that has it', async () => {
  const service = await useService((config) => {
    config.server.role = 'api'
  })
  await settle(service)
  const resources = resourcesOf(service)
  const lagging = await service.another((config) => {
    config.server.role = 'worker'
    config.locations = config.locations.filter(({ name }) => name !== 'us-west1-a')
  })
  expect([...lagging.services.engines.keys()]).not.toContain('us-west1-a')

  const far = await resources.createVm({ location: 'us-west1-a' })
  const doomed = await resources.createVm({ location: 'us-west1-a' })
  const deletion = await resources.removeVm(doomed.operation.metadata.id)
  // What it can do, it does, though what it cannot do is older.
  await resources.newVm()
  const rule = await resources.createRule()
  const untouched = await service.sql(
    `SELECT attempts, lease_token, state FROM operations JOIN operation_queue ON operation_id = id WHERE id = ANY ($1)`,
    [[far.operation.operation_id, deletion.operation.operation_id]],
  )
  const waiting = { attempts: 0, lease_token: null, state: 'IN_PROGRESS' }
  expect(untouched).toEqual([waiting, waiting])

  await service.another((config) => {
    config.server.role = 'worker'
  })
  await resources.succeeded(far)
  await resources.succeeded(deletion)
  await resources.succeeded(rule)
  await settle(service)
  await checkInvariants(service)
})

test('an operation that was claimed where its engine is missing waits, and a teardown never fails', async () => {
  const service = await useService()
  const resources = resourcesOf(service)
  const id = await resources.newVm()
  const { engines } = service.server.services
  const engine = engines.get('us-east1-a')!
  const engineMap = engines as Map<string, typeof engine>
  // Claimed as something that is done anywhere, as servers of the version before write it.
  engineMap.delete('us-east1-a')
  const creation = await resources.createVm()
  const deletion = await resources.removeVm(id)
  await service.sql(`UPDATE operation_queue SET location = ''`)
  const tried = [creation.operation.operation_id, deletion.operation.operation_id]
  await eventually(async () => {
    const rows = await service.sql(`SELECT FROM operations WHERE attempts > 0 AND id = ANY ($1)`, [tried])
    return rows.length === 2
  })
  engineMap.set('us-east1-a', engine)
  await resources.succeeded(creation)
  await resources.succeeded(deletion)
  await checkInvariants(service)
})
