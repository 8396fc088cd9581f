import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants } from '@slipway/testing/invariants.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { type SmallFleet, startSmallFleet } from '../support/fleets/small-fleet.ts'

/** Two hosts with two GPUs each, at a time that only the tests move. */
let fleet: SmallFleet
beforeAll(async () => {
  fleet = await startSmallFleet([2, 2])
})
afterAll(() => fleet?.service.close())
beforeEach(() => fleet.service.clock.freeze())
afterEach(() => fleet.clear())

test('a capacity request for a whole host is not starved by smaller ones: it is granted within the longest TTL on its target host', async () => {
  const { service } = fleet
  // Single-GPU VMs are created and expire; each has a TTL of one to four hours.
  const ttl = (n: number) => 3600 * ((n % 4) + 1)
  for (let n = 0; n < 4; n++) await fleet.newVm({ ttl_seconds: ttl(n), on_expiry: 'delete' })
  const large = await fleet.wait({ vm: vmBody({ type: 'a100.2x' }) })
  const small = (n: number) => fleet.wait({ vm: vmBody({ ttl_seconds: ttl(n), on_expiry: 'delete' }) })
  await Promise.all(Array.from({ length: 16 }, (_, n) => small(n)))
  await fleet.settled()
  let passedS = 0
  for (; passedS < 12 * 3600; passedS += 1800) {
    if ((await fleet.request(large.id)).state === 'fulfilled') break
    await service.clock.advance('1800 seconds')
    await service.server.reconciler.expiry()
    await fleet.settled()
  }
  const granted = await fleet.request(large.id)
  expect(granted.state).toBe('fulfilled')
  // The request accumulates GPUs after ten minutes, and then waits for at most the longest TTL.
  expect(passedS).toBeLessThanOrEqual(600 + 4 * 3600 + 1800)
}, 120_000)

test('accumulated GPUs are released when the capacity request is cancelled, or after four hours', async () => {
  const { service } = fleet
  // With one host, it is certain which GPUs the request accumulates.
  const operator = { token: service.credentials.operator_key }
  const [host] = (await service.ok('adminHostList', operator)).items
  const params = { host_id: host!.id }
  await service.ok('adminHostUpdate', { ...operator, params, body: { schedulable: false } })
  onTestFinished(async () => {
    await service.ok('adminHostUpdate', { ...operator, params, body: { schedulable: true } })
  })
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
  // After an equally long pause, it accumulates GPUs again.
  await service.clock.advance('4 hours')
  await fleet.settled()
  expect(await fleet.request(large.id)).toMatchObject({ state: 'waiting', gpus_held: 1 })
  await service.ok('capacityRequestDelete', { params: { capacity_request_id: large.id } })
  await fleet.settled()
  await fleet.newVm()
}, 60_000)

test('a worker whose connections break while it grants a capacity request never leaves a GPU both held and free, and continues', async () => {
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
  // A step that lost its connection is retried after a pause, so time must pass.
  await eventually(async () => {
    await service.clock.advance('1 second')
    return (await service.sql('SELECT FROM operation_queue')).length === 0
  })
  for (let n = 0; n < 6; n++) {
    await fleet.settled()
    await service.clock.advance('601 seconds')
    await service.server.reconciler.expiry()
  }
  await fleet.settled()
  for (const { id } of requests) expect((await fleet.request(id)).state).toBe('fulfilled')
}, 120_000)

/** Starts a service with one host, whose two GPUs each wait an hour for their reset. */
async function startSlowFleet() {
  const slow = await startSmallFleet([2], (config) => {
    for (const location of config.locations)
      if (location.engine === 'simulated') location.simulated.quarantineMs = 3_600_000
  })
  onTestFinished(() => slow.service.close())
  const { service } = slow
  await service.clock.freeze()
  const states = () => service.sql<{ state: string }>('SELECT state FROM gpus ORDER BY state')
  /** Stops a VM. The host reports the GPUs after this time. */
  const stop = async (vm: string, reportAfter: string) => {
    await service.clock.advance('1 second')
    await slow.succeeded(await slow.act(vm, { action: 'STOP' }))
    await service.clock.advance(reportAfter)
    await service.server.reconciler.reports()
  }
  return { ...slow, states, stop }
}

test('a VM that starts right after its stop gets its own GPUs, which are still in quarantine', async () => {
  const slow = await startSlowFleet()
  const vm = await slow.newVm({ type: 'a100.2x' })
  await slow.stop(vm, '1 second')
  expect(await slow.states()).toEqual([{ state: 'quarantined' }, { state: 'quarantined' }])
  expect(await slow.service.call('vmCreate', { body: vmBody() })).toMatchObject({ status: 409 })
  await slow.succeeded(await slow.act(vm, { action: 'START' }))
  expect(await slow.states()).toEqual([{ state: 'claimed' }, { state: 'claimed' }])
  await slow.service.clock.advance('1 second')
  await checkInvariants(slow.service)
})

test('a VM that starts right after its stop leaves the free GPU to a VM that stopped earlier', async () => {
  const slow = await startSlowFleet()
  const [early, late] = [await slow.newVm(), await slow.newVm()]
  await slow.stop(early, '2 hours')
  await slow.stop(late, '1 second')
  expect(await slow.states()).toEqual([{ state: 'free' }, { state: 'quarantined' }])
  for (const vm of [late, early]) await slow.succeeded(await slow.act(vm, { action: 'START' }))
  expect(await slow.states()).toEqual([{ state: 'claimed' }, { state: 'claimed' }])
  await slow.service.clock.advance('1 second')
  await checkInvariants(slow.service)
})

test('a capacity request that gets GPUs while the service adds it to its queue leaves the queue', async () => {
  const { service } = fleet
  for (let n = 0; n < 2; n++) await fleet.newVm({ type: 'a100.2x' })
  const { id } = await fleet.wait({ on_available: 'hold' })
  await fleet.settled()
  const other = new pg.Client(service.databaseUrl)
  await other.connect()
  onTestFinished(() => other.end())
  await other.query('BEGIN')
  await other.query('SELECT FROM capacity_lanes FOR UPDATE')
  await service.sql('UPDATE capacity_requests SET due_at = slipway_now() WHERE id = $1', [id])
  const served = service.server.reconciler.capacity()
  await eventually(
    async () =>
      (
        await service.sql(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        )
      ).length > 0,
  )
  // Acts like a transaction that frees GPUs at this moment.
  await other.query(
    `UPDATE capacity_requests SET state = 'held', location = 'us-east1-a', held_hosts = ARRAY(SELECT id FROM hosts),
       held_until = slipway_now() + interval '1 hour', due_at = slipway_now() + interval '1 hour' WHERE id = $1`,
    [id],
  )
  await other.query('UPDATE capacity_places SET is_open = false WHERE request_id = $1', [id])
  await other.query('COMMIT')
  await served
  expect(await service.sql('SELECT FROM capacity_places WHERE is_open')).toEqual([])
  expect(await fleet.request(id)).toMatchObject({ state: 'held' })
})
