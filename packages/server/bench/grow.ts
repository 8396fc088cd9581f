/**
 * Measures the same work on a small database and on one with a million VMs, 20,000 hosts, 10 million finished
 * operations and 40 million events. `--scale` sets a fraction of that size, by default a tenth. With `--store
 * DIR`, the large database is kept in that directory, and a later run measures it without filling it again.
 */
import { existsSync, mkdirSync, readFileSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { fullSize, growRows, openStore } from '@slipway/testing/grow-rows.ts'
import { openEmbedded } from '../src/postgres/embedded/index.ts'
import { measureChanges } from './changes.ts'
import { type Effort, quick, usual } from './effort.ts'
import { type Figure, formatNumber, print } from './figures.ts'
import { addTenants, addVms, createVms, stopVm, vmsOf } from './fixtures.ts'
import type { ChangedVm } from './load.ts'
import { Memory } from './process/memory.ts'
import { measureStarts } from './process/starts.ts'
import { compareReads, type Vms } from './reads.ts'
import { type Pair, runNow, saveResults } from './results.ts'
import { locations, RunningService } from './running-service.ts'
import { measureStreams } from './streams.ts'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    scale: { type: 'string', default: '0.1' },
    store: { type: 'string' },
  },
})
const scale = Number(values.scale)
if (!(scale > 0 && scale <= 1)) throw new Error(`--scale ${values.scale}: must be above 0 and at most 1`)
/** Includes temporary files and the write-ahead log. */
const gbAtFullScale = 80
const mostFactor = 1.3
const vmsPerOrganization = 10_000
const tenantName = 'grown'
/** How long to wait until all hosts of a new fleet have reported. */
const longestMs = 600_000

const base = values.quick ? quick : { ...usual, changeSeconds: 4, streamSeconds: 5 }
const effort: Effort = { ...base, rounds: 1, starts: 1 }
/**
 * The small and the large database alternate in each round, because the machine may be half as fast a minute
 * later.
 */
const rounds = values.quick ? 1 : 3
const size = Object.fromEntries(
  Object.entries(fullSize).map(([name, count]) => [name, Math.ceil(count * scale)]),
) as typeof fullSize

/** How the database in the directory of `--store` was filled. */
interface Filling {
  scale: number
  fillSeconds: number
}

const store = values.store === undefined ? undefined : resolve(values.store)
// The filled rows use GPUs of every host, so the measurement gets as many additional hosts as the small
// database has.
const largeHosts = size.hosts + effort.hosts
await withService(new RunningService(effort.hosts), async (small) => {
  await small.start()
  await withService(new RunningService(largeHosts, store), async (grown) => {
    const { fillSeconds } = await fill(grown)
    const run = runNow(await grown.postgresVersion(), values.quick)
    const sizeGb = await storeGb(grown)
    console.error(
      `  filled in ${fillSeconds.toFixed(0)} s, ${sizeGb.toFixed(1)} GB; measuring both databases alternately`,
    )
    const pairs = await measureInTurns(small, grown)
    for (const { small, grown, factor } of pairs) {
      print(grown)
      const verdict = factor <= mostFactor ? 'met' : 'MISSED'
      console.log(
        `    small database ${formatNumber(small.value)} ${small.unit}: × ${factor.toFixed(2)}  [≤ ${mostFactor}: ${verdict}]`,
      )
    }
    saveResults({ grow: { ...run, scale, rows: size, fillSeconds, sizeGb, pairs } })
  })
})

async function withService<T>(
  service: RunningService,
  work: (service: RunningService) => Promise<T>,
): Promise<T> {
  try {
    return await work(service)
  } finally {
    await service.close()
  }
}

/**
 * Measures both databases after a warm-up, because compiling code and filling caches happen only once and do
 * not depend on the size.
 */
async function measureInTurns(small: RunningService, grown: RunningService): Promise<Pair[]> {
  const stores = [
    { service: small, memory: new Memory(small) },
    { service: grown, memory: new Memory(grown) },
  ]
  type Store = (typeof stores)[number]
  const smallVms = await addVms(small)
  await addVms(grown)
  const reads = await compareReads(
    { service: grown, vms: (await grownVms(grown, smallVms.length)) as Vms },
    { service: small, vms: smallVms as Vms },
    { ...effort, rounds: usual.rounds },
  )
  const turns = new Map<string, [small: Figure, grown: Figure][]>()
  const measure = async (part: (store: Store) => Promise<Figure[]>, round = 0) => {
    const figures = new Map<Store, Figure[]>()
    // Alternate which database is measured first.
    for (const store of round % 2 === 0 ? stores : stores.toReversed()) figures.set(store, await part(store))
    const [ofSmall, ofGrown] = stores.map((store) => figures.get(store)!)
    for (const [index, figure] of ofSmall!.entries())
      turns.set(figure.id, [...(turns.get(figure.id) ?? []), [figure, ofGrown![index]!]])
  }
  for (let round = 0; round < rounds; round++) {
    await measure(({ service }) => measureChanges(service, effort), round)
    for (const { memory } of stores) await memory.note('changes')
    await measure(({ service }) => measureStreams(service, effort), round)
    for (const { memory } of stores) await memory.note('streams')
  }
  await measure(async ({ memory }) => [memory.figure])
  for (let round = 0; round < Math.max(rounds, 3); round++)
    await measure(async ({ service }) => {
      const starts = await measureStarts(service, effort.starts)
      return starts.filter(({ id }) => id === 'ready')
    }, round)
  return [...reads.map(pairOfReads), ...[...turns.values()].map(middleOf)]
}

/** Returns a read on both databases. The small database was measured as the baseline of the figure. */
function pairOfReads(figure: Figure): Pair {
  const { value, ratio } = figure.limits![0]!
  const grown = { ...figure, limits: [] }
  return { small: { ...grown, value }, grown, factor: 1 / (ratio ?? figure.value / value) }
}

/** Starts the service with the required rows, and returns how long filling took. */
async function fill(service: RunningService): Promise<Filling> {
  const note = join(service.dataDir, 'filling.json')
  if (existsSync(note)) {
    const found = JSON.parse(readFileSync(note, 'utf8')) as Filling
    if (found.scale !== scale) throw new Error(`${store} was filled with --scale ${found.scale}`)
    await service.start()
    return found
  }
  if (existsSync(service.dataDir))
    throw new Error(`${store} contains a database that was not filled completely: remove it`)
  requireSpace()
  const counts = Object.entries(size).map(([name, n]) => `${n.toLocaleString('en')} ${name}`)
  console.error(`  filling a database with ${counts.join(', ')}`)
  const startedAt = performance.now()
  await fillRows(service)
  const filling = { scale, fillSeconds: (performance.now() - startedAt) / 1000 }
  writeFileSync(note, JSON.stringify(filling))
  return filling
}

/**
 * Starts the service, which adds the hosts and creates the VMs that all others are copied from, and stops it
 * while rows are added.
 */
async function fillRows(service: RunningService): Promise<void> {
  await service.start()
  await eventually(async () => (await countOf(service, 'hosts')) >= largeHosts, longestMs)
  const database = openStore(service.dataDir)
  const organizations = Math.ceil(size.vms / vmsPerOrganization)
  const tenants = await addTenants(database, tenantName, organizations, 20)
  const [running, shutOff] = await createVms(service, await addTenants(database, 'template', 1, 1), 2)
  await stopVm(service, shutOff!)
  // Keeps PostgreSQL running while the service is stopped.
  const embedded = await openEmbedded({ dataDir: service.dataDir, log: () => {} })
  await service.main.stop()
  const share = (count: number) => Math.ceil(count / locations.length)
  try {
    for (const [index, location] of locations.entries())
      await growRows(database, {
        vms: share(size.vms),
        after: index * share(size.vms),
        operations: share(size.operations),
        events: share(size.events),
        location,
        projectIds: tenants.map(({ projectId }) => projectId),
        templates: { running: running!.vmId, shutOff: shutOff!.vmId },
      })
    await query(service.databaseUrl, 'VACUUM (ANALYZE)')
    await service.start()
  } finally {
    await database.close()
    await embedded.stop()
  }
}

/** Returns VMs of one of the filled projects. Their rows are spread over the tables. */
async function grownVms(service: RunningService, count: number): Promise<ChangedVm[]> {
  const { rows } = await service.database.query({
    text: `SELECT p.id FROM projects p JOIN organizations o ON o.id = p.organization_id
           WHERE o.name = $1 ORDER BY p.id LIMIT 1`,
    values: [`${tenantName} 0`],
  })
  return vmsOf(service, [rows[0].id], count)
}

/** Returns the round with the median factor. */
function middleOf(turns: [small: Figure, grown: Figure][]): Pair {
  const pairs = turns.map(([small, grown]) => ({ small, grown, factor: factorOf(small, grown) }))
  return pairs.toSorted((one, other) => one.factor - other.factor)[Math.floor(pairs.length / 2)]!
}

/** Returns how many times slower the large database is, for rates and for durations. */
function factorOf(small: Figure, grown: Figure): number {
  const factor = grown.value / small.value
  return grown.unit === '/s' ? 1 / factor : factor
}

async function countOf(service: RunningService, table: string): Promise<number> {
  const { rows } = await service.database.query({ text: `SELECT count(*) FROM ${table}` })
  return rows[0].count
}

async function storeGb(service: RunningService): Promise<number> {
  const { rows } = await service.database.query({
    text: 'SELECT pg_database_size(current_database())::float8 AS bytes',
  })
  return rows[0].bytes / 1e9
}

function requireSpace(): void {
  const dir = store ?? tmpdir()
  mkdirSync(dir, { recursive: true })
  const { bavail, bsize } = statfsSync(dir)
  const [freeGb, neededGb] = [(bavail * bsize) / 1e9, gbAtFullScale * scale]
  if (freeGb < neededGb)
    throw new Error(`${dir} has ${freeGb.toFixed(0)} GB left: --scale ${scale} needs ${neededGb.toFixed(0)}`)
}
