import type { Effort } from './effort.ts'
import { atLeast, atMost, type Baseline, both, type Figure, isBusy } from './figures.ts'
import { addTenants } from './fixtures.ts'
import { measureWriteBaselines, type WriteBaselines } from './limits.ts'
import { type Load, type LoadResult, runLoad } from './load.ts'
import { type Cost, cpuEach, measureCost } from './meter.ts'
import { locations, type RunningService } from './running-service.ts'

const clients = 64
const baselineConnections = 16

/**
 * Measures creations and deletions by one client and by many, and compares them with the smallest durable
 * changes on the same PostgreSQL.
 */
export async function measureChanges(service: RunningService, effort: Effort): Promise<Figure[]> {
  const url = service.main.url
  const manyOrganizations = await addTenants(service.database, 'many', 8, 1)
  const oneOrganization = await addTenants(service.database, 'one', 1, 8)
  const create = { kind: 'create', url, location: locations[0], tenants: manyOrganizations } as const
  const run = (load: Load) => measureCost(service, () => runLoad(load))

  const seconds = effort.changeSeconds
  // The first load warms up the process, which is still compiling its code. Clients usually use a process
  // that has run for a while.
  const first = await run({ ...create, clients, seconds: seconds / 3, location: locations[1] })
  const one = await run({ ...create, clients: 1, count: effort.samples })
  const baselineSeconds = Math.min(seconds, 3)
  const singleBaselines = await measureWriteBaselines(service, 1, baselineSeconds)
  const baselines = await measureWriteBaselines(service, baselineConnections, baselineSeconds)
  const many = await run({ ...create, clients, seconds })
  const shared = await run({ ...create, clients, seconds, tenants: oneOrganization, location: locations[1] })
  const vms = [first, many, shared].flatMap(({ result }) => result.changedVms)
  const deleted = await run({ kind: 'delete', url, clients, count: vms.length, vms })

  return [
    {
      id: 'post-accepted',
      what: 'POST → accepted, 1 client, p50',
      value: one.result.acceptedP50,
      unit: 'ms',
      aim: atMost(one.result.acceptedP50, 4, 'ms'),
      limits: baselinesOf(one.result.acceptedP50, singleBaselines, one.result, msEach),
    },
    {
      id: 'post-succeeded',
      what: 'POST → SUCCEEDED, 1 client, p50',
      value: one.result.p50,
      unit: 'ms',
      aim: atMost(one.result.p50, 10, 'ms'),
      limits: baselinesOf(one.result.p50, singleBaselines, one.result, msEach),
      cpu: cpuEach(one.cost, one.result.count, one.result.loadCores),
      more: { 'p99 ms': one.result.p99, ...perChange(one) },
    },
    rate('creations', `Creations to running, ${clients} clients, 8 organizations`, many, 400, baselines, 4.5),
    rate(
      'creations-one-org',
      `Creations to running, ${clients} clients, 1 organization`,
      shared,
      200,
      baselines,
    ),
    rate('deletions', `Deletions, ${clients} clients`, deleted, 400, baselines),
  ]
}

const msEach = (perSecond: number) => 1000 / perSecond

/** Returns the rates of the smallest durable changes as baselines of a figure, in the unit of the figure. */
function baselinesOf(
  value: number,
  { connections, transactions, inserts, pgbench }: WriteBaselines,
  { loadCores }: LoadResult,
  unitOf = (perSecond: number) => perSecond,
): Baseline[] {
  const over = connections === 1 ? '1 connection' : `${connections} connections`
  const baseline = (name: string, perSecond: number) => ({
    what: `${name}, ${over}`,
    value: unitOf(perSecond),
    ratio: isBusy(loadCores) ? null : value / unitOf(perSecond),
  })
  return [
    baseline('bare transactions', transactions),
    baseline('single INSERTs', inserts),
    ...(pgbench === undefined ? [] : [baseline('pgbench, one INSERT each', pgbench)]),
  ]
}

type MeasuredLoad = { result: LoadResult; cost: Cost }

const perChange = ({ result: { count }, cost }: MeasuredLoad) => ({
  statements: cost.statements / count,
  'round trips': cost.roundTrips / count,
  commits: cost.commits / count,
  'WAL bytes': cost.walBytes / count,
})

function rate(
  id: string,
  what: string,
  load: MeasuredLoad,
  least: number,
  baselines: WriteBaselines,
  mostCpuMs?: number,
): Figure {
  const { perSecond, count, loadCores, p50, p99 } = load.result
  const cpu = cpuEach(load.cost, count, loadCores)
  const rateAim = atLeast(perSecond, least, '/s')
  return {
    id,
    what,
    value: perSecond,
    unit: '/s',
    aim:
      mostCpuMs === undefined
        ? rateAim
        : both(rateAim, atMost(cpu.serverMs + cpu.postgresMs, mostCpuMs, 'ms of CPU in total')),
    limits: baselinesOf(perSecond, baselines, load.result),
    cpu,
    more: { 'p50 ms': p50, 'p99 ms': p99, ...perChange(load) },
  }
}
