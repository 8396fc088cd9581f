import { createDatabase } from '@slipway/testing/database.ts'
import { addLocation, gpuReport, hostReport, reportHost, reportHosts, rows } from '@slipway/testing/fleet.ts'
import { clockOf } from '@slipway/testing/postgres/clock.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import { placeVm } from '../../src/operations/vm/place.ts'
import { Database } from '../../src/postgres/database.ts'
import { markLostHosts } from '../../src/reconcile/host-reports.ts'
import { claimGpus, quarantineGpus } from '../../src/store/compute/placement.ts'
import {
  markDrainedHosts,
  setGpuHeldBack,
  setHostSchedulable,
  startDraining,
} from '../../src/store/fleet/fleet.ts'
import { beginInspection } from '../../src/store/fleet/inspections.ts'

let store: Awaited<ReturnType<typeof createDatabase>>
let database: Database
beforeAll(async () => {
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: 8 })
})
afterAll(async () => {
  await database.close()
  await store.drop()
})

interface HostFacts {
  id: string
  state: string
  family: string
  free_gpus: number
  capabilities: Record<string, unknown>
}

async function readHost(location: string, name = 'h'): Promise<HostFacts> {
  const [host] = await rows<HostFacts>(
    database,
    'SELECT * FROM hosts WHERE location = $1 AND name = $2',
    location,
    name,
  )
  return host!
}

const gpuStates = async (location: string) =>
  (
    await rows<{ state: string }>(
      database,
      'SELECT g.state FROM gpus g JOIN hosts h ON h.id = g.host_id WHERE h.location = $1 ORDER BY pci_address',
      location,
    )
  ).map(({ state }) => state)

const eventTypes = async (hostId: string) =>
  (
    await rows<{ type: string }>(
      database,
      'SELECT type FROM events_written WHERE resource_id = $1 ORDER BY seq',
      hostId,
    )
  ).map(({ type }) => type)

/** Creates a VM, which takes the first free GPUs of the location. */
async function claim(location: string, gpuCount: number): Promise<string> {
  const vmId = uuid()
  await database.transaction(async (tx) => {
    const placed = await placeVm(tx, { location, family: 'a100', gpuCount, allowedHosts: null })
    await claimGpus(tx, { vmId, gpuIds: placed!.gpuIds })
  })
  return vmId
}

const clock = clockOf((text, values) => database.query({ text, values }))
const pass = (seconds: number) => clock.advance(`${seconds} seconds`)

test('the first report of a host creates the host and its GPUs, free and open for VMs', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('h', 4))
  const host = await readHost(location)
  expect(host).toMatchObject({ state: 'up', family: 'a100', free_gpus: 4 })
  expect(await gpuStates(location)).toEqual(['free', 'free', 'free', 'free'])
  expect(await eventTypes(host.id)).toEqual(['host.up'])
})

test('the first report of a host withholds GPUs that are in use or were not reset', async () => {
  const location = await addLocation(database)
  const gpus = [gpuReport(0), gpuReport(1, { isClean: false }), gpuReport(2, { holderVmId: uuid() })]
  await reportHost(database, location, hostReport('h', gpus))
  expect(await gpuStates(location)).toEqual(['free', 'quarantined', 'quarantined'])
})

test('the first report of a host offers only as many GPUs as its cores and memory can serve', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, { ...hostReport('h', 8), cpuCores: 40, memoryGb: 960 })
  expect(await readHost(location)).toMatchObject({ free_gpus: 3 })
  await reportHost(database, location, { ...hostReport('h', 8), cpuCores: 96, memoryGb: 600 })
  expect(await readHost(location)).toMatchObject({ free_gpus: 5 })
})

test('the first report of a host leaves out GPUs with a shared IOMMU group, of another family or of an unknown model, and says so', async () => {
  const location = await addLocation(database)
  const gpus = [
    gpuReport(0),
    gpuReport(1),
    gpuReport(2, { iommuGroup: 9 }),
    gpuReport(3, { iommuGroup: 9 }),
    gpuReport(4, { model: 'A40 48GB PCIe' }),
    gpuReport(5, { model: 'Voodoo 2' }),
  ]
  await reportHost(database, location, hostReport('h', gpus))
  expect(await gpuStates(location)).toEqual(['free', 'free', 'gone', 'gone', 'gone', 'gone'])
  const { capabilities } = await readHost(location)
  expect(capabilities.unusable_gpus).toHaveLength(4)
})

test('concurrent first reports create each host once', async () => {
  const location = await addLocation(database)
  const reports = Array.from({ length: 120 }, (_, i) => hostReport(`h${i}`, 2))
  await Promise.all([1, 2, 3].map(() => reportHosts(database, location, reports)))
  const [count] = await rows(
    database,
    'SELECT count(*) AS hosts, sum(free_gpus) AS free FROM hosts WHERE location = $1',
    location,
  )
  expect(count).toEqual({ hosts: 120, free: 240 })
})

test('a later report without changes updates only the time of the report', async () => {
  const location = await addLocation(database)
  const report = hostReport('h', 2)
  expect(await reportHost(database, location, report)).toBe(1)
  const before = await rows(database, 'SELECT xmin FROM hosts WHERE location = $1', location)
  expect(await reportHost(database, location, report)).toBe(0)
  expect(await rows(database, 'SELECT xmin FROM hosts WHERE location = $1', location)).toEqual(before)
})

test('a later report removes missing GPUs and restores them when they are back', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('h', 3))
  await reportHost(database, location, hostReport('h', 1))
  expect(await gpuStates(location)).toEqual(['free', 'gone', 'gone'])
  expect(await readHost(location)).toMatchObject({ free_gpus: 1 })
  await reportHost(database, location, hostReport('h', 3))
  expect(await gpuStates(location)).toEqual(['free', 'free', 'free'])
})

test('a later report never takes a GPU from its VM, and alerts operators once to a missing GPU', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('h', 2))
  const vmId = await claim(location, 2)
  await reportHost(database, location, hostReport('h', 0))
  await reportHost(database, location, { ...hostReport('h', 0), memoryGb: 1000 })
  expect(await gpuStates(location)).toEqual(['claimed', 'claimed'])
  const host = await readHost(location)
  expect(await eventTypes(host.id)).toEqual(['host.up', 'gpu.missing', 'gpu.missing'])
  await database.transaction((tx) => quarantineGpus(tx, [vmId]))
  expect(await gpuStates(location)).toEqual(['quarantined', 'quarantined'])
})

test('a later report never frees GPUs that wait for a reset or that an operator withholds', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('h', 2))
  const vmId = await claim(location, 1)
  await database.transaction((tx) => quarantineGpus(tx, [vmId]))
  const [held] = await rows<{ id: string }>(
    database,
    `SELECT g.id FROM gpus g JOIN hosts h ON h.id = g.host_id WHERE h.location = $1 AND g.state = 'free'`,
    location,
  )
  await database.transaction((tx) => setGpuHeldBack(tx, held!.id, true))
  await reportHost(database, location, { ...hostReport('h', 2), memoryGb: 1000 })
  expect(await gpuStates(location)).toEqual(['quarantined', 'quarantined'])
  await reportHost(database, location, hostReport('h', 0))
  await reportHost(database, location, hostReport('h', 2))
  const gpus = await rows<{ state: string; is_held_back: boolean }>(
    database,
    'SELECT g.state, g.is_held_back FROM gpus g JOIN hosts h ON h.id = g.host_id WHERE h.location = $1',
    location,
  )
  expect(gpus.find((gpu) => gpu.is_held_back)?.state).toBe('quarantined')
})

test('a silent host is marked as down, takes no VMs, and comes back with its next report', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('h', 2))
  // Hosts of earlier tests may have been silent for longer.
  const markLost = () => markLostHosts(database, 30_000, { locations: [location] })
  expect(await markLost()).toBe(0)
  await pass(31)
  expect(await markLost()).toBe(1)
  expect(await readHost(location)).toMatchObject({ state: 'down' })
  await reportHost(database, location, hostReport('h', 2))
  const host = await readHost(location)
  expect(host).toMatchObject({ state: 'up', free_gpus: 2 })
  expect(await eventTypes(host.id)).toEqual(['host.up', 'host.down', 'host.up'])
})

test('a host that reports is not marked as lost if the clock moves back and forth during an inspection', async () => {
  const location = await addLocation(database)
  const silent = hostReport('silent', 2)
  await reportHost(database, location, silent)
  await pass(7_200)
  const inspection = await beginInspection(database, location, 500)
  const asked = { askedAt: inspection.begunAt, inspection: inspection.number }
  await pass(-3_600)
  await reportHosts(database, location, [hostReport('h', 2)], asked)
  const markLost = () => markLostHosts(database, 30_000, { locations: [location], inspection })
  await pass(1_800)
  expect(await markLost()).toBe(1)
  expect(await readHost(location)).toMatchObject({ state: 'up' })
  expect(await readHost(location, 'silent')).toMatchObject({ state: 'down' })
  // This report was requested by the earlier inspection.
  await pass(-1_800)
  await reportHosts(database, location, [hostReport('h', 2)], asked)
  await pass(1_800)
  expect(await markLost()).toBe(0)
})

test('a silent host is still draining or cordoned when it comes back', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('draining', 2))
  await claim(location, 1)
  await reportHost(database, location, hostReport('closed', 2))
  const [draining, closed] = [await readHost(location, 'draining'), await readHost(location, 'closed')]
  await database.transaction((tx) => startDraining(tx, draining.id))
  await database.transaction((tx) => setHostSchedulable(tx, closed.id, false))
  await pass(31)
  await markLostHosts(database, 30_000)
  for (const name of ['draining', 'closed']) await reportHost(database, location, hostReport(name, 2))
  await database.transaction((tx) => markDrainedHosts(tx))
  expect(await readHost(location, 'draining')).toMatchObject({ state: 'draining' })
  expect(await readHost(location, 'closed')).toMatchObject({ state: 'up', is_schedulable: false })
})

test('hosts are inspected in detail in turn, after reachable hosts with GPUs to free', async () => {
  const location = await addLocation(database)
  const names = ['h1', 'h2', 'h3', 'h4']
  for (const name of names) await reportHost(database, location, hostReport(name, 1))
  const inspection = async (most: number) =>
    names.filter((await beginInspection(database, location, most)).isDetailed)
  expect([await inspection(5), await inspection(4), await inspection(4)]).toEqual([names, names, names])
  expect([await inspection(2), await inspection(2), await inspection(3)]).toEqual([
    ['h1', 'h2'],
    ['h3', 'h4'],
    ['h1', 'h2', 'h3'],
  ])
  expect([await inspection(3), await inspection(3)]).toEqual([['h4'], ['h1', 'h2', 'h3']])
  await database.query({
    text: `UPDATE gpus SET state = 'quarantined', quarantined_at = slipway_now()
           WHERE host_id IN (SELECT id FROM hosts WHERE location = $1 AND name IN ('h1', 'h2'))`,
    values: [location],
  })
  await database.query({
    text: `UPDATE hosts SET state = 'down' WHERE location = $1 AND name = 'h2'`,
    values: [location],
  })
  expect(await inspection(3)).toEqual(['h1', 'h4'])
})
