import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
beforeAll(async () => {
  service = await startService()
  resources = resourcesOf(service)
})
afterAll(() => service.close())

const now = async () => (await service.sql<{ now: Date }>('SELECT slipway_now() AS now'))[0]!.now.getTime()
const clockAlerts = async () => {
  const { items } = await service.ok('adminAlertList', { token: service.credentials.operator_key })
  return items.filter(({ kind }) => kind === 'clock').map(({ message }) => message)
}
const meters = (vmId: string) =>
  service.sql<{ from: Date; to: Date | null; ms: number }>(
    `SELECT lower(period) AS from, upper(period) AS to, ms_between(lower(period), coalesce(upper(period), slipway_now())) AS ms
     FROM usage_intervals WHERE resource_id = $1 ORDER BY id`,
    [vmId],
  )
const act = async (vmId: string, action: string) => resources.succeeded(await resources.act(vmId, { action }))

test('a clock that jumps forward alerts operators before a VM expires because of it', async () => {
  const id = await resources.newVm({ ttl_seconds: 1_800, on_expiry: 'delete' })
  expect(await clockAlerts()).toEqual([])
  await service.clock.setAhead('1 hour')
  await service.server.reconciler.expiry()
  expect(await clockAlerts()).toEqual([expect.stringMatching(/jumped forward by 3,\d{3} s/)])
  expect(await resources.stateOf(id)).toBe('STATE_RUNNING')
  await service.clock.ageStep('16 minutes')
  await eventually(async () => (await service.call('vmGet', { params: { vm_id: id } })).status === 404)
})

test('a clock that jumps back does not move the time of the service back, loses no usage, and alerts operators', async () => {
  await service.clock.setAhead('1 hour')
  const [running, stopped] = [await resources.newVm(), await resources.newVm()]
  await act(stopped, 'STOP')
  // A worker records the time every second or two, and the time of the service never goes back before that record.
  const before = await now()
  await eventually(async () => {
    const [clock] = await service.sql<{ is_recorded: boolean }>(
      'SELECT latest >= $1::timestamptz AS is_recorded FROM clock',
      [new Date(before)],
    )
    return clock!.is_recorded
  })
  await service.clock.setAhead('0')
  expect(await now()).toBeGreaterThanOrEqual(before)
  await eventually(async () => /jumped back by 3,\d{3} s/.test((await clockAlerts()).join()))

  await act(running, 'STOP')
  await act(stopped, 'START')
  await resources.newVm()
  for (const { ms } of [...(await meters(running)), ...(await meters(stopped))]) expect(ms).toBeGreaterThan(0)
  expect(await now()).toBeGreaterThan(before)
  await checkInvariants(service)
})

test('a time that was ahead of the clock agrees with it again without ever going back', async () => {
  await service.clock.forgetSteps('1 second')
  let last = await now()
  await eventually(async () => {
    const current = await now()
    expect(current).toBeGreaterThanOrEqual(last)
    last = current
    const [clock] = await service.sql<{ is_over: boolean }>(
      `SELECT ahead < interval '1 second' AS is_over FROM clock`,
    )
    return clock!.is_over
  })
})

test('a test clock that goes back raises no alert, and meters do not overlap', async () => {
  await service.clock.forgetSteps()
  await service.clock.advance('1 hour')
  const id = await resources.newVm()
  await service.clock.reset()
  await act(id, 'STOP')
  await act(id, 'START')
  const [first, second] = await meters(id)
  expect(first!.to!.getTime()).toBeGreaterThan(first!.from.getTime())
  expect(second!.from).toEqual(first!.to)
  await service.clock.advance('3 hours')
  await act(id, 'STOP')
  const [, last] = await meters(id)
  expect(last!.ms).toBeGreaterThan(3_600_000)
  await checkInvariants(service)
  expect(await clockAlerts()).toEqual([])
})
