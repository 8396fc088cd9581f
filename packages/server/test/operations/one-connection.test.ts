import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { useService } from '@slipway/testing/service.ts'
import { expect, test } from 'vitest'
import { holdCalls } from '../support/held-calls.ts'

/** A request that holds a connection and waits for a second one can deadlock. With one connection it always does. */
test('a process can do all its work over one connection, because no holder of a connection waits for another', async () => {
  const service = await useService((config) => {
    config.database.poolSize = 1
  })
  const resources = resourcesOf(service)
  const disk = await resources.newDisk()
  const [one, other] = await Promise.all([
    resources.newVm({ disks: [{ disk_id: disk }], ttl_seconds: 3600 }),
    resources.newVm(),
  ])
  const rule = await resources.newRule({ destinations: [{ resource_id: one }] })
  await resources.succeeded(await resources.detach(one, disk))
  await resources.succeeded(await resources.grow(disk, '20GiB'))
  await resources.succeeded(await resources.attach(other, disk))
  await resources.succeeded(await resources.act(other, { action: 'RESET' }))
  await resources.succeeded(await resources.act(other, { action: 'STOP' }))
  await resources.succeeded(await resources.act(other, { action: 'START' }))
  await resources.succeeded(await resources.changeRule(rule, { destination_ports: ['80'] }))
  const body = { name: 'once', size: '1GiB', location: 'us-east1-a' }
  const headers = { 'idempotency-key': 'one-connection' }
  const responses = await Promise.all([1, 2, 3].map(() => service.call('diskCreate', { body, headers })))
  expect(responses.map(({ status }) => status).filter((status) => status >= 500)).toEqual([])
  await service.ok('projectCosts')
  await service.ok('availabilityList')
  await service.clock.advance('2 hours')
  await service.server.reconciler.once()
  await service.server.billing.once()
  await resources.succeeded(await resources.removeRule(rule))
  await resources.clear()
  await settle(service)
  await checkInvariants(service)
  expect(service.logLines.filter((line) => line.includes('no database connection became free'))).toEqual([])
})

test.each([
  ['os_disk_lost_at = slipway_now()', { code: 'engine_error', message: expect.stringContaining('OS disk') }],
  [
    `state = 'STATE_SHUTOFF'`,
    { code: 'conflict', message: 'The VM changed to STATE_SHUTOFF in the meantime.' },
  ],
])('a boot fails with the reason if its VM has changed, over one connection: %s', async (change, result) => {
  const service = await useService((config) => {
    config.database.poolSize = 1
  })
  const { createVm, ended } = resourcesOf(service)
  const { called, release } = holdCalls(service.simulator(), 'ensureVm', undefined, 'end')
  const accepted = await createVm()
  await called
  await service.sql(`UPDATE vms SET ${change}`)
  release()
  expect(await ended(accepted)).toMatchObject({ state: 'FAILED', result })
  expect(service.logLines.filter((line) => line.includes('no database connection became free'))).toEqual([])
})
