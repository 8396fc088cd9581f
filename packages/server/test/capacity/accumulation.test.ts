import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants } from '@slipway/testing/invariants.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { expect, onTestFinished, test } from 'vitest'
import { startSmallFleet } from '../support/small-fleet.ts'

/** A fleet of two hosts with four GPUs each, at a time that only the test moves. */
async function useFleet(...[hosts, change]: Parameters<typeof startSmallFleet>) {
  const fleet = await startSmallFleet(hosts, change)
  onTestFinished(() => fleet.service.close())
  await fleet.service.clock.freeze()
  return fleet
}

test('a whole-host request is not starved by smaller ones: it ends within the longest life on its target', async () => {
  const fleet = await useFleet([4, 4])
  const { service } = fleet
  // Single-GPU VMs come and go; each has a time to live of one to four hours.
  const ttl = (n: number) => 3600 * ((n % 4) + 1)
  for (let n = 0; n < 8; n++) await fleet.newVm({ ttl_seconds: ttl(n), on_expiry: 'delete' })
  const large = await fleet.wait({ vm: vmBody({ type: 'a100.4x' }) })
  for (let n = 0; n < 30; n++) await fleet.wait({ vm: vmBody({ ttl_seconds: ttl(n), on_expiry: 'delete' }) })
  await fleet.settled()
  let passedS = 0
  for (; passedS < 12 * 3600; passedS += 900) {
    if ((await fleet.request(large.id)).state === 'fulfilled') break
    await service.clock.advance('900 seconds')
    await service.server.reconciler.expiry()
    await fleet.settled()
  }
  const granted = await fleet.request(large.id)
  expect(granted.state).toBe('fulfilled')
  // Ten minutes until it accumulates, and at most the longest life.
  expect(passedS).toBeLessThanOrEqual(600 + 4 * 3600 + 900)
  await checkInvariants(service)
}, 120_000)

test('accumulated GPUs go back when the request is cancelled, or after four hours', async () => {
  const fleet = await useFleet([2])
  const { service } = fleet
  const [first] = [await fleet.newVm(), await fleet.newVm()]
  const large = await fleet.wait({ vm: vmBody({ type: 'a100.2x' }) })
  await fleet.settled()
  await service.clock.advance('11 minutes')
  await fleet.settled()
  await fleet.free(first!)
  expect(await fleet.request(large.id)).toMatchObject({ state: 'waiting', gpus_held: 1 })
  expect(await service.call('vmCreate', { body: vmBody() })).toMatchObject({ status: 409 })
  await service.clock.advance('4 hours')
  await fleet.settled()
  expect(await fleet.request(large.id)).toMatchObject({ state: 'waiting', gpus_held: 0 })
  const third = await fleet.newVm()
  await fleet.free(third)
  // After as long a pause, it accumulates again.
  await service.clock.advance('4 hours')
  await fleet.settled()
  expect(await fleet.request(large.id)).toMatchObject({ state: 'waiting', gpus_held: 1 })
  await service.ok('capacityRequestDelete', { params: { capacity_request_id: large.id } })
  await fleet.settled()
  await fleet.newVm()
  await checkInvariants(service)
}, 60_000)

test('a VM that starts right after its stop gets its own GPUs, which are still in quarantine', async () => {
  const fleet = await useFleet([2], (config) => {
    for (const location of config.locations)
      if (location.engine === 'simulated') location.simulated.quarantineMs = 3_600_000
  })
  const { service } = fleet
  const vm = await fleet.newVm({ type: 'a100.2x' })
  await service.clock.advance('1 second')
  await fleet.succeeded(await fleet.act(vm, { action: 'STOP' }))
  await service.clock.advance('1 second')
  await service.server.reconciler.reports()
  const states = () => service.sql<{ state: string }>('SELECT state FROM gpus')
  expect(await states()).toEqual([{ state: 'quarantined' }, { state: 'quarantined' }])
  expect(await service.call('vmCreate', { body: vmBody() })).toMatchObject({ status: 409 })
  await fleet.succeeded(await fleet.act(vm, { action: 'START' }))
  expect(await states()).toEqual([{ state: 'claimed' }, { state: 'claimed' }])
  await service.clock.advance('1 second')
  await checkInvariants(service)
})

test('a worker whose connections break while it grants leaves no GPU held and free, and goes on', async () => {
  const fleet = await useFleet([2])
  const { service } = fleet
  const requests: { id: string }[] = []
  for (let n = 0; n < 12; n++) {
    const body = { vm: vmBody({ ttl_seconds: 600, on_expiry: 'delete' }) }
    const headers = { 'idempotency-key': body.vm.name }
    // A request that lost its connection is sent again.
    requests.push(
      await eventually(async () => {
        const sent = await service.call('capacityRequestCreate', { body, headers })
        return sent.status === 200 && sent.body
      }),
    )
    await service.sql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
    )
  }
  for (let n = 0; n < 6; n++) {
    await fleet.settled()
    await service.clock.advance('601 seconds')
    await service.server.reconciler.expiry()
  }
  await fleet.settled()
  for (const { id } of requests) expect((await fleet.request(id)).state).toBe('fulfilled')
  await checkInvariants(service)
}, 120_000)
