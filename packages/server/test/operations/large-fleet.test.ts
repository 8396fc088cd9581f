import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

const location = 'us-east1-a'
const hostCount = 1_200

let service: TestService
let resources: ReturnType<typeof resourcesOf>
beforeAll(async () => {
  service = await startService((config) => {
    const large = config.locations.find(({ name }) => name === location)!
    config.locations = [large]
    if (large.engine === 'simulated')
      large.simulated.hosts = [{ count: hostCount, model: 'A100 40GB PCIe', gpus: 1 }]
  })
  resources = resourcesOf(service)
  await eventually(async () => (await openHosts()) === hostCount)
})
afterAll(() => service.close())
afterEach(async () => {
  await resources.clear()
  await settle(service)
  await checkInvariants(service)
})

const openHosts = async () => {
  const [{ count } = { count: 0 }] = await service.sql<{ count: number }>(
    `SELECT count(*)::integer FROM hosts WHERE state = 'up'`,
  )
  return count
}
const hostOf = async (vmId: string) => {
  const [host] = await service.sql<{ id: string; name: string; state: string }>(
    'SELECT h.id, h.name, h.state FROM vms v JOIN hosts h ON h.id = v.host_id WHERE v.id = $1',
    [vmId],
  )
  return host!
}
const reports = () => service.server.reconciler.reports()
/** Records that the host has just been inspected in detail, so that its next turn is the furthest away. */
const recordTurn = (host: string) => service.sql('UPDATE locations SET inspected_up_to = $1', [host])

test('each inspection of a large fleet covers every host, but the VMs of only some hosts, and all hosts have their turn', async () => {
  const id = await resources.newVm()
  await service.sql(`UPDATE simulated_vms SET power = 'crashed' WHERE id = $1`, [id])
  const engine = service.simulator(location)
  const inventory = engine.inventory.bind(engine)
  const inspections: { reported: number; detailed: string[] }[] = []
  engine.inventory = async function* (signal, isDetailed) {
    const inspection = { reported: 0, detailed: [] as string[] }
    for await (const report of inventory(signal, isDetailed)) {
      inspection.reported += 1
      if (!report.isSummary) inspection.detailed.push(report.name)
      yield report
    }
    inspections.push(inspection)
  }
  try {
    await eventually(async () => {
      await reports()
      return new Set(inspections.flatMap(({ detailed }) => detailed)).size === hostCount
    })
  } finally {
    engine.inventory = inventory
  }
  expect(await resources.stateOf(id)).toBe('STATE_CRASHED')
  expect(new Set(inspections.map(({ reported }) => reported))).toEqual(new Set([hostCount]))
  expect(Math.max(...inspections.map(({ detailed }) => detailed.length))).toBeLessThan(hostCount)
})

test('a host of a large fleet is lost and comes back with its VMs without waiting for its turn of inspection', async () => {
  const id = await resources.newVm()
  const { name } = await hostOf(id)
  await service.simulator(location).setHostLost(name, true)
  await service.clock.advance('31 seconds')
  await eventually(async () => {
    await recordTurn(name)
    await reports()
    return (await resources.stateOf(id)) === 'STATE_UNREACHABLE'
  })
  expect(await hostOf(id)).toMatchObject({ state: 'down' })
  expect(await openHosts()).toBe(hostCount - 1)
  await service.simulator(location).setHostLost(name, false)
  await eventually(async () => {
    await recordTurn(name)
    await reports()
    return (await resources.stateOf(id)) === 'STATE_RUNNING'
  })
  expect(await hostOf(id)).toMatchObject({ state: 'up' })
})

test('a GPU that a VM of a large fleet released is free again without waiting for the turn of its host', async () => {
  const id = await resources.newVm()
  const { id: hostId, name } = await hostOf(id)
  await resources.succeeded(await resources.removeVm(id))
  await eventually(async () => {
    await recordTurn(name)
    await reports()
    const gpus = await service.sql('SELECT state FROM gpus WHERE host_id = $1', [hostId])
    return gpus.every(({ state }) => state === 'free')
  })
})

test('a crashed VM of a large fleet is noticed without waiting for the turn of its host if the engine sends events', async () => {
  const id = await resources.newVm()
  const { name } = await hostOf(id)
  await recordTurn(name)
  await service.simulator(location).crashVm(id)
  await eventually(async () => {
    await recordTurn(name)
    return (await resources.stateOf(id)) === 'STATE_CRASHED'
  })
})
