import { eventually } from '@slipway/testing/eventually.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
/** An operation that no worker runs during the tests. */
let idle: string
beforeAll(async () => {
  service = await startService((config) => {
    config.server.role = 'api'
  })
  resources = resourcesOf(service)
  idle = (await resources.createDisk()).operation.operation_id
  await service.sql(`UPDATE operation_queue SET run_at = run_at + interval '1 day' WHERE operation_id = $1`, [
    idle,
  ])
  await service.another((config) => {
    config.server.role = 'worker'
  })
})
afterAll(() => service.close())

const wait = (operation_id: string, seconds: number) =>
  service.call('operationGet', { params: { operation_id }, query: { wait: seconds } })

/** Counts how often waiting requests read an operation. */
function countReads() {
  const asked = vi.spyOn(service.database, 'query')
  return {
    of: (id: string) =>
      asked.mock.calls.filter(
        ([{ name, values }]) => name === 'operation_ended' && JSON.stringify(values).includes(id),
      ).length,
    stop: () => asked.mockRestore(),
  }
}

test('the end of an operation in another process wakes only requests that wait for that operation', async () => {
  const reads = countReads()
  const startedAt = performance.now()
  const held = Array.from({ length: 20 }, () => wait(idle, 10))
  await eventually(() => reads.of(idle) > 0)
  for (let count = 0; count < 30; count++)
    await service.ended((await resources.createDisk()).operation.operation_id)
  // Each request reads once when it starts to wait, then all twenty share one read every two seconds. The end of
  // another operation causes no read.
  const byInterval = (performance.now() - startedAt) / 2_000
  expect(reads.of(idle)).toBeLessThanOrEqual(20 + byInterval)
  reads.stop()
  for (const { status, body } of await Promise.all(held))
    expect([status, body.state]).toEqual([200, 'IN_PROGRESS'])
})

test('a long poll is notified when an operation ends in another process', async () => {
  const { operation } = await resources.createDisk()
  const { body } = await wait(operation.operation_id, 60)
  expect(body.state).toBe('SUCCEEDED')
})

test('a caller can have at most 64 long polls, and disconnected ones no longer count', async () => {
  const hangUp = new AbortController()
  const url = `${service.url}/v0.1/projects/${service.credentials.project_id}/operations/${idle}?wait=30`
  const headers = { authorization: `Bearer ${service.credentials.access_key}` }
  const asked = Array.from({ length: 65 }, () => fetch(url, { headers, signal: hangUp.signal }))
  const refusal = await Promise.race(asked)
  expect([refusal.status, refusal.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await refusal.json()).toMatchObject({ code: 'rate_limited' })
  hangUp.abort()
  const outcomes = await Promise.allSettled(asked)
  expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(64)
  await eventually(async () => (await wait(idle, 1)).status === 200)
})
