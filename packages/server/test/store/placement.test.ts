import { setImmediate } from 'node:timers/promises'
import { familyNames, vmTypes } from '@slipway/contract'
import { createDatabase } from '@slipway/testing/database.ts'
import { addLocation, gpuReport, hostReport, reportHost, rows } from '@slipway/testing/fleet.ts'
import { countOf } from '@slipway/testing/setup/counts.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import { placeVm } from '../../src/operations/vm/place.ts'
import { transactTogether } from '../../src/postgres/batches.ts'
import { Database, TryAgain } from '../../src/postgres/database.ts'
import type { PlacementRequest } from '../../src/store/compute/host-locks.ts'
import {
  claimGpus,
  freeCleanGpus,
  listAvailability,
  listCapacity,
  listQuarantinedGpus,
  quarantineGpus,
} from '../../src/store/compute/placement.ts'
import { chooseHost, type HostCandidate } from '../support/placement-rules.ts'

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

/** Claims GPUs as an admission does: lock, choose, claim, commit. */
function place(request: Partial<PlacementRequest> & { location: string }, vmId = uuid()) {
  const whole: PlacementRequest = { family: 'a100', gpuCount: 1, allowedHosts: null, ...request }
  return database.transaction(async (tx) => {
    const placed = await placeVm(tx, whole)
    if (!placed) return null
    const { hostId, gpuIds } = placed
    await claimGpus(tx, { vmId, gpuIds })
    const [host] = await rows<{ name: string }>(tx, 'SELECT name FROM hosts WHERE id = $1', hostId)
    const gpus = await rows<{ id: string; numaNode: number }>(
      tx,
      'SELECT id, numa_node AS "numaNode" FROM gpus WHERE vm_id = $1',
      vmId,
    )
    return { vmId, hostId, host: host!.name, gpus }
  })
}

const leave = (vmId: string) => database.transaction((tx) => quarantineGpus(tx, [vmId]))

const later = () => new Date(Date.now() + 60_000)

/** Waits until a session of this database waits for a lock of another session. */
async function lockIsAwaited() {
  const text = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  while ((await rows(database, text)).length === 0) await setImmediate()
}

async function freeAll(location: string) {
  const gpus = await listQuarantinedGpus(database, location)
  await freeCleanGpus(
    database.withoutTransaction,
    gpus.map(({ id }) => id),
    later(),
  )
}

test('the last GPU goes to exactly one of two requests, every time', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('only', 1))
  for (let round = 0; round < countOf('placementRaces'); round++) {
    const placed = (await Promise.all([place({ location }), place({ location })])).filter(Boolean)
    expect(placed).toHaveLength(1)
    await leave(placed[0]!.vmId)
    await freeAll(location)
  }
})

test('placement gives out every GPU once and refuses further requests', async () => {
  const location = await addLocation(database)
  for (const name of ['a', 'b']) await reportHost(database, location, hostReport(name, 8))
  const placed = (await Promise.all(Array.from({ length: 20 }, () => place({ location })))).filter(
    (one) => one !== null,
  )
  expect(placed).toHaveLength(16)
  expect(new Set(placed.flatMap(({ gpus }) => gpus.map(({ id }) => id))).size).toBe(16)
})

test('placement waits for a host that another request has locked, and uses it when it is released', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('only', 1))
  let abandon = () => {}
  const isLocked = new Promise<void>((locked) => {
    const isOver = new Promise<void>((resolve) => {
      abandon = resolve
    })
    void database
      .transaction(async (tx) => {
        await placeVm(tx, { location, family: 'a100', gpuCount: 1, allowedHosts: null })
        locked()
        await isOver
        throw new Error('released')
      })
      .catch(() => {})
  })
  await isLocked
  const waiting = place({ location })
  await lockIsAwaited()
  abandon()
  expect(await waiting).toMatchObject({ host: 'only' })
})

/** Makes a request that needs GPUs that another request of the batch may release count as not placed. */
function undefinedIfTryAgain(error: unknown): undefined {
  if (!(error instanceof TryAgain)) throw error
}

test('several VMs are placed together, each on one host, and a VM is refused only if it does not fit', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 4 }),
      fc.array(fc.constantFrom(1, 1, 2, 4, 8), { minLength: 1, maxLength: 10 }),
      async (hosts, gpuCounts) => {
        const location = await addLocation(database)
        for (const [i, gpus] of hosts.entries())
          await reportHost(database, location, hostReport(`h${i}`, gpus))
        const requests = gpuCounts.map(
          (gpuCount): PlacementRequest => ({ location, family: 'a100', gpuCount, allowedHosts: null }),
        )
        const vmIds = gpuCounts.map(() => uuid())
        let attempts = 0
        const placed = await database.transaction(
          async (tx) => {
            attempts++
            const found = await Promise.all(
              requests.map((request) => placeVm(tx, request).catch(undefinedIfTryAgain)),
            )
            for (const [i, each] of found.entries())
              if (each) await claimGpus(tx, { vmId: vmIds[i]!, gpuIds: each.gpuIds })
            return found
          },
          { isBatch: true },
        )
        expect(attempts).toBe(1)
        for (const [i, each] of placed.entries()) {
          const onHosts = await rows<{ host_id: string }>(
            database,
            'SELECT host_id FROM gpus WHERE vm_id = $1',
            vmIds[i],
          )
          expect(onHosts).toHaveLength(each ? gpuCounts[i]! : 0)
          expect(new Set(onHosts.map(({ host_id }) => host_id)).size).toBe(each ? 1 : 0)
          if (!each) expect(await place({ location, gpuCount: gpuCounts[i]! })).toBeNull()
        }
        if (gpuCounts.every((count) => count === gpuCounts[0])) {
          const room = hosts.reduce((sum, gpus) => sum + Math.floor(gpus / gpuCounts[0]!), 0)
          expect(placed.filter(Boolean)).toHaveLength(Math.min(room, gpuCounts.length))
        }
      },
    ),
    { numRuns: 60 },
  )
})

test('placement of several VMs does not wait for a host that another request has locked', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('only', 8))
  const request: PlacementRequest = { location, family: 'a100', gpuCount: 1, allowedHosts: null }
  await database.transaction(async (holder) => {
    await placeVm(holder, request)
    const placed = await transactTogether(database, [request, request], false, (tx, each) =>
      placeVm(tx, each),
    )
    expect(placed).toEqual([expect.any(TryAgain), expect.any(TryAgain)])
  })
})

const anyHost = fc.record({
  gpus: fc.integer({ min: 1, max: 10 }),
  gone: fc.integer({ min: 0, max: 10 }),
  coresForGpus: fc.constantFrom(10, 10, 3),
  isSchedulable: fc.constantFrom(true, true, true, false),
  state: fc.constantFrom('up', 'up', 'up', 'down', 'draining', 'drained'),
})

test('availability and capacity agree with placement, which uses the host that the rules choose', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyHost, { minLength: 0, maxLength: 5 }),
      fc.constantFrom(1, 2, 4, 8),
      async (hosts, gpuCount) => {
        const location = await addLocation(database)
        for (const [i, host] of hosts.entries()) {
          const report = hostReport(`h${i}`, host.gpus)
          await reportHost(database, location, { ...report, cpuCores: 12 * host.coresForGpus })
          const isGone = (g: number) => (g * 7) % 10 < host.gone
          const gpus = report.gpus.filter((_, g) => !isGone(g))
          await reportHost(database, location, { ...report, gpus, cpuCores: 12 * host.coresForGpus })
          await database.query({
            text: 'UPDATE hosts SET is_schedulable = $3, state = $4 WHERE location = $1 AND name = $2',
            values: [location, `h${i}`, host.isSchedulable, host.state],
          })
        }
        const type = vmTypes.filter((one) => one.family === 'a100' && one.gpuCount === gpuCount)
        const [available] = await listAvailability(database, type, location)
        const [capacity] = await listCapacity(database, type, location)
        expect(available!.available).toBe(capacity!.quantity > 0)

        let placed = 0
        for (;;) {
          const open = await rows<HostCandidate>(
            database,
            `SELECT id, free_gpus AS "freeGpus", max_node_free AS "maxNodeFree"
               FROM hosts WHERE location = $1 AND is_schedulable AND state = 'up'`,
            location,
          )
          const vm = await place({ location, gpuCount })
          expect(vm?.hostId).toBe(chooseHost(open, gpuCount)?.id)
          if (!vm) break
          placed++
        }
        expect(placed).toBe(capacity!.quantity)
      },
    ),
    { numRuns: 60 },
  )
})

test('placement uses only allowed hosts', async () => {
  const location = await addLocation(database)
  for (const name of ['a', 'b']) await reportHost(database, location, hostReport(name, 8))
  const [b] = await rows<{ id: string }>(
    database,
    `SELECT id FROM hosts WHERE location = $1 AND name = 'b'`,
    location,
  )
  for (const gpuCount of [1, 2, 4])
    expect(await place({ location, gpuCount, allowedHosts: [b!.id] })).toMatchObject({ host: 'b' })
  expect(await place({ location, gpuCount: 2, allowedHosts: [b!.id] })).toBeNull()
  expect(await place({ location, gpuCount: 8 })).toMatchObject({ host: 'a' })
})

test('a host serves only its own GPU family', async () => {
  const location = await addLocation(database)
  const gpus = [gpuReport(0, { model: 'L40S 48GB PCIe' })]
  await reportHost(database, location, hostReport('l40s', gpus))
  for (const family of familyNames)
    expect((await place({ location, family })) !== null).toBe(family === 'l40s-48gb')
})

test('placement keeps 4 GPUs inside one NUMA node although a fuller host would fit', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('fuller', 6))
  await reportHost(database, location, hostReport('roomy', 8))
  const vm = await place({ location, gpuCount: 4 })
  expect(vm?.host).toBe('roomy')
  expect(new Set(vm?.gpus.map(({ numaNode }) => numaNode)).size).toBe(1)
})

test('a released GPU is unavailable until an inspection that began afterwards finds it clean', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('only', 1))
  const vm = await place({ location })
  await leave(vm!.vmId)
  expect(await place({ location })).toBeNull()
  const [gpu] = await listQuarantinedGpus(database, location)
  const before = new Date(gpu!.quarantined_at.getTime() - 1)
  expect(await freeCleanGpus(database.withoutTransaction, [gpu!.id], before)).toEqual([])
  expect(await place({ location })).toBeNull()
  expect(await freeCleanGpus(database.withoutTransaction, [gpu!.id], later())).toEqual([gpu!.host_id])
  expect(await place({ location })).not.toBeNull()
})

test('a GPU stays claimed if it is reported clean while a VM uses it', async () => {
  const location = await addLocation(database)
  await reportHost(database, location, hostReport('only', 1))
  const vm = await place({ location })
  expect(await freeCleanGpus(database.withoutTransaction, [vm!.gpus[0]!.id], later())).toEqual([])
})
