import { eventually } from '@slipway/testing/eventually.ts'
import { ownerToken } from '@slipway/testing/people.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { useService } from '@slipway/testing/service.ts'
import { expect, test } from 'vitest'
import { holdCalls } from '../support/held-calls.ts'

test('a long queue of one project does not keep another out', async () => {
  const service = await useService((config) => {
    config.operations.concurrency = 8
  })
  const resources = resourcesOf(service)
  const { organization_id } = service.credentials
  const token = await ownerToken(service)
  const other = await service.ok('projectCreate', { token, body: { name: 'other', organization_id } })

  // Every VM of the first project hangs for long: without a bound its queue would hold all eight places.
  holdCalls(service.simulator(), 'ensureVm')
  for (let index = 0; index < 16; index++) await resources.createVm({ public_ip: 'none' })
  const held = () => service.sql('SELECT FROM operation_queue WHERE lease_token IS NOT NULL')
  await eventually(async () => (await held()).length === 6)

  const params = { project_id: other.id }
  const body = { name: 'theirs', size: '1GiB', location: 'us-east1-a' }
  const { operation } = await service.ok('diskCreate', { token, params, body })
  const ended = await eventually(async () => {
    const now = await service.ok('operationGet', {
      token,
      params: { ...params, operation_id: operation.operation_id },
    })
    return now.state !== 'IN_PROGRESS' && now
  })
  expect(ended.state).toBe('SUCCEEDED')
  expect(await held()).toHaveLength(6)
})
