import { offerGpus } from '../../src/operations/capacity/offer.ts'
import type { Database } from '../../src/postgres/database.ts'
import { freeCleanGpus } from '../../src/store/compute/placement.ts'
import type { Effort } from '../effort.ts'
import { atMost, type Figure, median, percentile } from '../figures.ts'
import { addTenants } from '../fixtures.ts'
import { deleteVms, runLoad } from '../load.ts'
import { locations, type RunningService } from '../running-service.ts'

const waiting = 10_000
/** The number of releases that are not measured, because each connection first has to plan its statements. */
const warmUps = 20
const rounds = 5

/**
 * Measures the end of a GPU's quarantine and the creation of a VM, without and with many waiting requests for
 * GPUs of the same family.
 * The queue is filled and emptied several times, so that the ratio is still right if the machine becomes
 * slower in the meantime.
 */
export async function measureWaiting(service: RunningService, effort: Effort): Promise<Figure[]> {
  const { database, main } = service
  const tenants = await addTenants(database, 'waiting', 8, 1)
  const create = async () => {
    const load = { url: main.url, location: locations[0], tenants, clients: 1, count: effort.samples }
    const created = await runLoad({ kind: 'create', ...load })
    await deleteVms(main.url, [created])
    return created.acceptedP50
  }
  await create()
  const withoutQueue = { release: [] as number[], create: [] as number[] }
  const withQueue = { release: [] as number[], create: [] as number[] }
  const measure = async (times: typeof withoutQueue) => {
    times.release.push(await releaseMs(database, effort.samples))
    times.create.push(await create())
  }
  for (let round = 0; round < rounds; round++) {
    await measure(withoutQueue)
    await addWaiting(database)
    await measure(withQueue)
    await removeWaiting(database)
  }
  const [release, releaseWithoutQueue] = [median(withQueue.release), median(withoutQueue.release)]
  const [createWithQueue, createWithoutQueue] = [median(withQueue.create), median(withoutQueue.create)]
  return [
    {
      id: 'release-waiting',
      what: `Release of a GPU with ${waiting.toLocaleString('en')} waiting requests, p50`,
      value: release,
      unit: 'ms',
      aim: atMost(release / releaseWithoutQueue, 1.3, 'times a release without a queue'),
      more: { 'without a queue, ms': releaseWithoutQueue },
    },
    {
      id: 'creation-beside-waiting',
      what: `POST → accepted with ${waiting.toLocaleString('en')} waiting requests, 1 client, p50`,
      value: createWithQueue,
      unit: 'ms',
      aim: atMost(createWithQueue / createWithoutQueue, 1.1, 'times a creation without a queue'),
      more: { 'without a queue, ms': createWithoutQueue },
    },
  ]
}

/** Ends the quarantine of one GPU at a time, in a queue whose requests all need more GPUs than are free. */
async function releaseMs(database: Database, times: number): Promise<number> {
  const { rows } = await database.pool.query<{ id: string }>(
    `SELECT g.id FROM gpus g JOIN hosts h ON h.id = g.host_id
     WHERE h.location = $1 AND h.family = 'a100' AND g.state = 'free' ORDER BY g.id LIMIT 1`,
    [locations[0]],
  )
  const gpuIds = rows.map(({ id }) => id)
  const durationsMs: number[] = []
  for (let n = -warmUps; n < times; n++) {
    await database.pool.query(
      `UPDATE gpus SET state = 'quarantined', quarantined_at = slipway_now() - interval '1 second' WHERE id = ANY ($1)`,
      [gpuIds],
    )
    const startedAt = performance.now()
    await database.transaction(async (tx) => offerGpus(tx, await freeCleanGpus(tx, gpuIds, new Date())))
    if (n >= 0) durationsMs.push(performance.now() - startedAt)
  }
  return percentile(
    durationsMs.sort((a, b) => a - b),
    0.5,
  )
}

/**
 * Adds waiting requests of many organizations. Each request needs more GPUs than a host has, so that none is
 * granted.
 */
async function addWaiting(database: Database): Promise<void> {
  const fill = (text: string) => database.pool.query(text, [locations[0]])
  await fill(`INSERT INTO capacity_lanes (location, family) VALUES ($1, 'a100') ON CONFLICT DO NOTHING`)
  await fill(
    `INSERT INTO capacity_requests (id, organization_id, project_id, on_available, hold_seconds, body, family, gpus, until, actor,
       request_id, due_at)
     SELECT gen_random_uuid(), p.organization_id, p.id, 'create', 900, '{}', 'a100', 100, now() + interval '7 days', 'bench', $1,
       now() + interval '7 days'
     FROM generate_series(1, ${waiting}) n JOIN (SELECT *, row_number() OVER () - 1 AS at, count(*) OVER () AS all FROM projects) p
       ON p.at = n % p.all`,
  )
  await fill(
    `INSERT INTO capacity_places (request_id, location, family, turn, gpus)
     SELECT id, $1, 'a100', row_number() OVER (), gpus FROM capacity_requests WHERE actor = 'bench'`,
  )
  await database.pool.query('ANALYZE capacity_places; ANALYZE capacity_requests')
  // Each insertion has updated the row of the queue, which now has many dead versions.
  await database.pool.query('VACUUM capacity_lanes')
}

async function removeWaiting(database: Database): Promise<void> {
  await database.pool.query(
    `DELETE FROM capacity_places; DELETE FROM capacity_requests WHERE actor = 'bench'`,
  )
  for (const table of ['capacity_places', 'capacity_requests', 'capacity_lanes'])
    await database.pool.query(`VACUUM ANALYZE ${table}`)
}
