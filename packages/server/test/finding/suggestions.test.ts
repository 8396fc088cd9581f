import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

const start = '2026-11-20T10:00:00Z'
const hoursLater = (hours: number) => new Date(Date.parse(start) + hours * 3_600_000).toISOString()

let service: TestService
let resources: ReturnType<typeof resourcesOf>
beforeAll(async () => {
  service = await startService(() => {}, start)
  resources = resourcesOf(service)
})
afterAll(() => service?.close())

const suggested = async () => (await service.ok('suggestionList')).items

/** Samples all VMs some hours after the start. */
async function sampleAt(hours: number, load: number, ...vmIds: string[]): Promise<void> {
  await service.clock.freeze(hoursLater(hours))
  for (const vmId of vmIds) await service.simulator().setMetrics(vmId, { gpu_utilization: load })
  await service.server.reconciler.samples()
}

/** Repeats the sample of a VM for every minute of some hours. */
const repeat = (vmId: string, hours: number) =>
  service.sql(
    `INSERT INTO vm_samples (vm_id, at, data)
     SELECT vm_id, at + n * interval '1 minute', data FROM vm_samples, generate_series(1, $2::integer * 60 - 1) n
     WHERE vm_id = $1`,
    [vmId, hours],
  )

/** Moves the clock and packs the samples of complete hours, which also takes one more sample. */
async function continueAt(hours: number): Promise<void> {
  await service.clock.freeze(hoursLater(hours))
  await service.server.reconciler.samples()
}

test('a VM whose GPUs were idle for a day is suggested with its cost per month, until it is busy', async () => {
  const idle = await resources.newVm({ name: 'idle', type: 'a100-80gb.2x' })
  await sampleAt(0, 4, idle)
  await repeat(idle, 24)
  await continueAt(24)
  const [price] = await service.sql<{ usd: string }>(
    `SELECT usd FROM prices WHERE product_name = 'a100-80gb.2x' ORDER BY valid_from DESC LIMIT 1`,
  )
  expect(await suggested()).toEqual([
    {
      ...{ kind: 'idle_vm', resource_id: idle, name: 'idle' },
      usd_per_month: expect.closeTo(Number(price!.usd) * 730, 2),
      evidence: { highest_gpu_utilization: 4, hours: 24 },
      message: 'The GPUs of idle were below 5% for 24 hours. Stop it, or give it an idle policy.',
    },
  ])
  await service.simulator().setMetrics(idle, { gpu_utilization: 5 })
  await continueAt(24.1)
  expect(await suggested()).toEqual([])
  // The busy minute is now in a packed hour.
  await service.simulator().setMetrics(idle, { gpu_utilization: 0 })
  await continueAt(25.5)
  expect(await suggested()).toEqual([])
  await resources.succeeded(await resources.removeVm(idle))
})

test('a VM is not suggested if its samples or those of one GPU are missing, or if it is stopped', async () => {
  const [gaps, half, stopped] = await Promise.all(
    ['gaps', 'half', 'stopped'].map((name) => resources.newVm({ name, type: 'a100-80gb.2x' })),
  )
  await sampleAt(48, 0, gaps!, half!, stopped!)
  await service.sql(
    `UPDATE vm_samples SET data = json_build_object('h', data -> 'h', 'g', json_build_array(data -> 'g' -> 0)) WHERE vm_id = $1`,
    [half],
  )
  await repeat(gaps!, 21)
  await repeat(half!, 24)
  await repeat(stopped!, 24)
  await continueAt(72)
  expect((await suggested()).map(({ name }) => name)).toEqual(['stopped'])
  await resources.succeeded(await resources.act(stopped!, { action: 'STOP' }))
  expect(await suggested()).toEqual([])
})

test('a disk without a VM is suggested after a day, unless it is protected', async () => {
  const vm = await resources.newVm()
  const [loose, attached] = [await resources.newDisk({ name: 'loose' }), await resources.newDisk()]
  await resources.newDisk({ deletion_protection: true })
  await resources.succeeded(await resources.attach(vm, attached))
  await service.clock.advance('23 hours')
  expect(await suggested()).toEqual([])
  await service.clock.advance('2 hours')
  expect(await suggested()).toEqual([
    {
      ...{ kind: 'detached_disk', resource_id: loose, name: 'loose', evidence: { size_gib: 10 } },
      usd_per_month: expect.any(Number),
      message: 'loose (10 GiB) is not attached to a VM. Delete it if you no longer need its data.',
    },
  ])
})
