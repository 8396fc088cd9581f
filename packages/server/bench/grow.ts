/**
 * The same work on a small store and on one with a million VMs, 20,000 hosts, 10 million finished operations and 40 million
 * events, or the part of it that `--scale` says: by default a tenth.
 */
import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { fullSize, growRows } from '@slipway/testing/grow-rows.ts'
import { openEmbedded } from '../src/store/embedded/index.ts'
import { measureChanges } from './changes.ts'
import { type Effort, quick, usual } from './effort.ts'
import { type Figure, print, shown } from './figures.ts'
import { addTenants, addVms, createVms, stopVm, type Tenant } from './fixtures.ts'
import type { Made } from './load.ts'
import { Memory } from './memory.ts'
import { measureReads } from './reads.ts'
import { keep, type Pair, runNow } from './results.ts'
import { locations, RunningService } from './running-service.ts'
import { measureStarts } from './starts.ts'
import { measureStreams } from './streams.ts'

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, scale: { type: 'string', default: '0.1' } },
})
const scale = Number(values.scale)
if (!(scale > 0 && scale <= 1)) throw new Error(`--scale ${values.scale}: must be above 0 and at most 1`)
/** With what is written on the way. */
const gbAtFullScale = 80
const mostFactor = 1.3
const vmsPerOrganization = 10_000
/** Until a new fleet has reported. */
const longestMs = 600_000

const given = values.quick ? quick : { ...usual, changeSeconds: 6 }
// Both stores are measured warm: what a process compiles and a cache reads once is no growth. A start is one of several.
const effort: Effort = {
  ...given,
  connections: [16],
  rounds: Math.max(given.rounds, 1),
  starts: Math.max(given.starts, 3),
}
const size = Object.fromEntries(
  Object.entries(fullSize).map(([name, count]) => [name, Math.ceil(count * scale)]),
) as typeof fullSize

const service = new RunningService(effort.hosts)
try {
  requireSpace()
  await service.start()
  const run = runNow(await service.postgresVersion(), values.quick)
  console.error('  measuring the small store')
  const small = await measure((made) => Promise.resolve(made))
  console.error(
    `  growing it to ${Object.entries(size)
      .map(([name, n]) => `${n.toLocaleString('en')} ${name}`)
      .join(', ')}`,
  )
  const begun = performance.now()
  const tenant = await fill()
  const fillSeconds = (performance.now() - begun) / 1000
  const sizeGb = await storeGb()
  console.error(`  ${fillSeconds.toFixed(0)} s, ${sizeGb.toFixed(1)} GB; measuring the grown store`)
  const grown = await measure(() => madeOf(tenant))
  const pairs = grown.map((figure) => pairOf(small.find(({ id }) => id === figure.id)!, figure))
  for (const { small, grown, factor } of pairs) {
    print(grown)
    const verdict = factor <= mostFactor ? 'met' : 'MISSED'
    console.log(
      `    small store ${shown(small.value)} ${small.unit}: × ${factor.toFixed(2)}  [≤ ${mostFactor}: ${verdict}]`,
    )
  }
  keep({ grow: { ...run, scale, rows: size, fillSeconds, sizeGb, pairs } })
} finally {
  await service.close()
}

/** `choose` says what is read; it is given the VMs whose creation warms up a process that has just started. */
async function measure(choose: (warmUp: Made[]) => Promise<Made[]>): Promise<Figure[]> {
  const memory = new Memory(service)
  const [first, ...others] = await choose(await addVms(service))
  const parts = {
    reads: () => measureReads(service, [first!, ...others], effort),
    changes: () => measureChanges(service, effort),
    streams: () => measureStreams(service, effort),
  }
  const figures: Figure[] = []
  for (const [name, part] of Object.entries(parts)) {
    figures.push(...(await part()))
    await memory.note(name)
  }
  figures.push(memory.figure)
  const starts = await measureStarts(service, effort.starts)
  return [...figures, ...starts.filter(({ id }) => id === 'ready')]
}

/**
 * The service itself takes up the hosts and makes the VMs that the others are copied from; then it rests. Returns one of
 * those who have the new VMs.
 */
async function fill(): Promise<Tenant> {
  await service.main.stop()
  const hosts = Math.max(size.hosts, effort.hosts)
  service.configure(hosts)
  await service.start()
  await eventually(async () => (await countOf('hosts')) >= hosts, longestMs)
  const tenants = await addTenants(service.database, 'grown', Math.ceil(size.vms / vmsPerOrganization), 20)
  const [running, shutOff] = await createVms(service, await addTenants(service.database, 'template', 1, 1), 2)
  await stopVm(service, shutOff!)
  // Without it PostgreSQL would go with the service.
  const embedded = await openEmbedded({ dataDir: service.dataDir, log: () => {} })
  await service.main.stop()
  const share = (count: number) => Math.ceil(count / locations.length)
  try {
    for (const [index, location] of locations.entries())
      await growRows(service.database, {
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
    await embedded.stop()
  }
  return tenants[0]!
}

/** The VMs that a tenant was given, which lie all over the tables. */
async function madeOf(tenant: Tenant): Promise<Made[]> {
  const { rows } = await service.database.query({
    text: `SELECT v.id AS "vmId", (SELECT o.id FROM operations o WHERE o.resource_id = v.id LIMIT 1) AS "operationId"
           FROM vms v WHERE v.project_id = $1`,
    values: [tenant.projectId],
  })
  return rows.map((row) => ({ ...tenant, ...row }))
}

/** How many times slower, whichever way the figure counts. */
function pairOf(small: Figure, grown: Figure): Pair {
  const factor = grown.value / small.value
  return { small, grown, factor: grown.unit === '/s' ? 1 / factor : factor }
}

async function countOf(table: string): Promise<number> {
  const { rows } = await service.database.query({ text: `SELECT count(*) FROM ${table}` })
  return rows[0].count
}

async function storeGb(): Promise<number> {
  const { rows } = await service.database.query({
    text: 'SELECT pg_database_size(current_database())::float8 AS bytes',
  })
  return rows[0].bytes / 1e9
}

function requireSpace(): void {
  const { bavail, bsize } = statfsSync(tmpdir())
  const [freeGb, neededGb] = [(bavail * bsize) / 1e9, gbAtFullScale * scale]
  if (freeGb < neededGb)
    throw new Error(
      `${tmpdir()} has ${freeGb.toFixed(0)} GB left: --scale ${scale} needs ${neededGb.toFixed(0)}`,
    )
}
