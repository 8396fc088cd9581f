import type { Effort } from './effort.ts'
import { atLeast, atMost, both, type Figure, isBusy, type Limit } from './figures.ts'
import { addTenants } from './fixtures.ts'
import { type WriteLimits, writeLimits } from './limits.ts'
import { type Load, type LoadResult, runLoad } from './load.ts'
import { type Cost, cpuEach, measureCost } from './meter.ts'
import { locations, type RunningService } from './running-service.ts'

const clients = 64
const limitConnections = 16

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
  // The first load warms up the process, which still compiles its code. Clients usually use a process that
  // has run for a while.
  const first = await run({ ...create, clients, seconds: seconds / 3, location: locations[1] })
  const one = await run({ ...create, clients: 1, count: effort.samples })
  const limitSeconds = Math.min(seconds, 3)
  const singleLimits = await writeLimits(service, 1, limitSeconds)
  const limits = await writeLimits(service, limitConnections, limitSeconds)
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
      limits: limitsOf(one.result.acceptedP50, singleLimits, one.result, msEach),
    },
    {
      id: 'post-succeeded',
      what: 'POST → SUCCEEDED, 1 client, p50',
      value: one.result.p50,
      unit: 'ms',
      aim: atMost(one.result.p50, 10, 'ms'),
      limits: limitsOf(one.result.p50, singleLimits, one.result, msEach),
      cpu: cpuEach(one.cost, one.result.count, one.result.loadCores),
      more: { 'p99 ms': one.result.p99, ...perChange(one) },
    },
    rate('creations', `Creations to running, ${clients} clients, 8 organizations`, many, 400, limits, 4.5),
    rate(
      'creations-one-org',
      `Creations to running, ${clients} clients, 1 organization`,
      shared,
      200,
      limits,
    ),
    rate('deletions', `Deletions, ${clients} clients`, deleted, 400, limits),
  ]
}

const msEach = (perSecond: number) => 1000 / perSecond

/** Returns the rates of the smallest durable changes as limits of a figure, in the unit of the figure. */
function limitsOf(
  value: number,
  { connections, transactions, inserts, pgbench }: WriteLimits,
  { loadCores }: LoadResult,
  unitOf = (perSecond: number) => perSecond,
): Limit[] {
  const over = connections === 1 ? '1 connection' : `${connections} connections`
  const limit = (name: string, perSecond: number) => ({
    what: `${name}, ${over}`,
    value: unitOf(perSecond),
    ratio: isBusy(loadCores) ? null : value / unitOf(perSecond),
  })
  return [
    limit('bare transactions', transactions),
    limit('single INSERTs', inserts),
    ...(pgbench === undefined ? [] : [limit('pgbench, one INSERT each', pgbench)]),
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
  limits: WriteLimits,
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
    limits: limitsOf(perSecond, limits, load.result),
    cpu,
    more: { 'p50 ms': p50, 'p99 ms': p99, ...perChange(load) },
  }
}
