import { vmBody } from '@slipway/testing/resources.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { groupBody, type SmallFleet, startSmallFleet } from '../support/fleets/small-fleet.ts'

/** Creations that are sent without a pause while GPUs become free. */
const creations = 1_000
let fleet: SmallFleet
beforeAll(async () => {
  fleet = await startSmallFleet([2, 2])
})
afterAll(() => fleet?.service.close())

async function floodDuring(free: () => Promise<void>): Promise<number[]> {
  const statuses: number[] = []
  const sender = async () => {
    while (statuses.length < creations)
      statuses.push((await fleet.service.call('vmCreate', { body: vmBody({ type: 'a100.2x' }) })).status)
  }
  await Promise.all([free(), ...Array.from({ length: 8 }, sender)])
  return statuses
}

test('1,000 creations get none of the GPUs that are offered to a waiting request', async () => {
  const vms = [await fleet.newVm({ type: 'a100.2x' }), await fleet.newVm({ type: 'a100.2x' })]
  const { id } = await fleet.wait({ vm: vmBody({ type: 'a100.2x' }) })
  const statuses = await floodDuring(() => fleet.free(vms[0]!))
  expect(statuses.filter((status) => status !== 409)).toEqual([])
  expect(await fleet.request(id)).toMatchObject({ state: 'fulfilled' })
  await fleet.clear()
})

test('1,000 creations get none of the GPUs that complete a waiting group', async () => {
  const [large, ...small] = [await fleet.newVm({ type: 'a100.2x' }), await fleet.newVm(), await fleet.newVm()]
  const { id } = await fleet.wait({ instance_group: groupBody(3) })
  await fleet.free(small[0]!)
  const statuses = await floodDuring(() => fleet.free(large!))
  expect(statuses.filter((status) => status !== 409)).toEqual([])
  expect(await fleet.request(id)).toMatchObject({ state: 'fulfilled' })
  await fleet.clear()
})
