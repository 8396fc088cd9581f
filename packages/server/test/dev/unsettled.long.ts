import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService, withLevers } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService(withLevers, '2026-11-20T12:00:00Z')
})
afterAll(() => service?.close())

test('the clock stops where an operation hangs, and the response names the operation', async () => {
  const { levers } = service
  await levers.faults.create({ on: 'vm-create', step: 'boot', effect: 'hang' })
  const { operation } = await service.ok('vmCreate', { body: vmBody({ name: 'hangs' }) })
  const before = await levers.clock.get()
  const error = await levers.clock.advance({ seconds: 3_600 }).catch((thrown) => thrown)
  expect(error).toMatchObject({ status: 409, code: 'conflict' })
  expect(error.message).toContain(before.now)
  expect(error.message).toContain(operation.operation_id)
  expect(await levers.clock.get()).toEqual(before)
})
