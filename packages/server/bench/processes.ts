import { availableParallelism } from 'node:os'
import type { Effort } from './effort.ts'
import { type Figure, isBusy, median, ratioAtLeast } from './figures.ts'
import { addTenants, type Tenant } from './fixtures.ts'
import { startBareRoutes } from './limits.ts'
import { deleteMade, type LoadResult, type Made, read, runLoad } from './load.ts'
import { each, metered } from './meter.ts'
import { answerOf, type Vms } from './reads.ts'
import { locations, type RunningService, type ServerProcess } from './running-service.ts'

const connections = 64

const counts = [1, 2, 4]

/**
 * GETs and creations spread over one, two and four API processes on the same store. GETs come first: creations leave work
 * behind for a while, for PostgreSQL and for the hosts. All processes run while creations are measured, and one, two or four
 * of them are asked, in turns, after each has created a number of VMs.
 */
export async function measureProcesses(
  service: RunningService,
  made: Vms,
  effort: Effort,
): Promise<Figure[]> {
  const tenants = await addTenants(service.database, 'processes', 8, 1)
  const servers: ServerProcess[] = [service.main]
  const reads = new Map<number, Measured>()
  const bare = new Map<number, Measured>()
  for (const count of counts) {
    while (servers.length < count) servers.push(await service.startProcess('api'))
    reads.set(count, await readFrom(service, servers, made.map(pathOf), made[0].token, effort))
    bare.set(count, await readBare(service, count, made, effort))
  }
  const first = await create(servers, { tenants, location: locations[0], count: effort.firstCreations })
  await deleteMade(service.main.url, first)
  const creations = new Map<number, Measured[]>(counts.map((count) => [count, []]))
  for (let round = 0; round < Math.max(1, effort.rounds); round++)
    for (let turn = 0; turn < counts.length; turn++) {
      // Each count comes first, second and last in one of three rounds.
      const count = counts[(round + turn) % counts.length]!
      // GPUs of VMs that are gone are not free at once: the next in turn take those of the other location.
      const location = locations[(round + turn + 1) % locations.length]!
      const creating = { tenants, location, seconds: effort.changeSeconds / 2 }
      creations.get(count)!.push(await createAt(service, servers, count, creating))
    }
  for (const other of servers.slice(1)) await other.stop()
  return counts.flatMap((count) => {
    const where = `${count} API process${count === 1 ? '' : 'es'} on ${availableParallelism()} cores`
    const read = beside(reads.get(count)!, reads.get(1)!)
    return [
      {
        id: `get-vm-processes-${count}`,
        what: `GET VM, ${connections} connections, ${where}`,
        ...withLimit(read, `bare route, ${count} of its processes`, bare.get(count)!),
      },
      {
        id: `creations-processes-${count}`,
        what: `Creations, ${connections} clients, ${where}, ${counts.at(-1)} running`,
        ...beside(middleOf(creations.get(count)!), middleOf(creations.get(1)!)),
      },
    ]
  })
}

/** More processes may bring nothing where no core is left for them, but they must not cost anything either. */
function beside(measured: Measured, alone: Measured): Measured {
  if (measured === alone) return measured
  const isBound = [measured, alone].some(({ cpu }) => isBusy(cpu!.loadCores))
  const ratio = isBound ? null : measured.value / alone.value
  const limit = { what: 'one process', value: alone.value, ratio }
  return { ...measured, limits: [limit], aim: ratioAtLeast(limit, 0.9, 'rate of one process') }
}

type Measured = Omit<Figure, 'id' | 'what'>

const withLimit = (measured: Measured, what: string, { value, cpu }: Measured): Measured => ({
  ...measured,
  limits: [
    ...(measured.limits ?? []),
    { what, value, ratio: isBusy(cpu!.loadCores) ? null : measured.value / value },
  ],
})

const pathOf = ({ projectId, vmId }: Made) => `/v0.1/projects/${projectId}/vms/${vmId}`

/** What as many processes reach that send the same bytes: beyond the cores there are, it falls for anyone. */
async function readBare(
  service: RunningService,
  count: number,
  made: Vms,
  effort: Effort,
): Promise<Measured> {
  const { databaseUrl } = service
  const vmIds = made.map(({ vmId }) => vmId)
  const answers = { vm: await answerOf(service, pathOf(made[0]), made[0].token) }
  const servers = await Promise.all(
    Array.from({ length: count }, () => startBareRoutes({ databaseUrl, answers, vmIds, ...made[0] })),
  )
  try {
    return await readFrom(service, servers, ['/vm/bare'], made[0].token, effort)
  } finally {
    for (const server of servers) server.stop()
  }
}

async function readFrom(
  service: RunningService,
  servers: { url: string; pid: number }[],
  paths: string[],
  token: string,
  effort: Effort,
): Promise<Measured> {
  const share = Math.max(1, Math.round(connections / servers.length))
  const readOne =
    (seconds: number) =>
    ({ url }: { url: string }) =>
      read({ url, paths, token, connections: share, seconds })
  // A process that has just started still compiles, the longer the more of them share the cores.
  await Promise.all(servers.map(readOne(effort.readSeconds * servers.length)))
  const rounds: Measured[] = []
  for (let round = 0; round < Math.max(1, effort.rounds); round++) {
    const pids = servers.map(({ pid }) => pid)
    const { result, cost } = await metered(
      service,
      () => Promise.all(servers.map(readOne(effort.readSeconds))),
      pids,
    )
    const sum = (name: 'count' | 'perSecond') => result.reduce((total, one) => total + one[name], 0)
    // Child processes that run at once see the CPU time of those that ended before: the largest value covers all of them.
    const loadCores = Math.max(...result.map((one) => one.loadCores))
    rounds.push({ value: sum('perSecond'), unit: '/s', cpu: each(cost, sum('count'), loadCores) })
  }
  return middleOf(rounds)
}

function middleOf(rounds: Measured[]): Measured {
  const middle = median(rounds.map(({ value }) => value))
  return rounds.find(({ value }) => value === middle)!
}

type Creating = { tenants: Tenant[]; location: string } & ({ count: number } | { seconds: number })

/** At each of the servers at once, with as many clients in all. */
const create = (servers: ServerProcess[], how: Creating): Promise<LoadResult[]> =>
  Promise.all(
    servers.map(({ url }) => runLoad({ kind: 'create', url, clients: connections / servers.length, ...how })),
  )

/** All processes run, and the given number of them gets requests; the others receive signals, and their CPU is counted. */
async function createAt(
  service: RunningService,
  servers: ServerProcess[],
  count: number,
  creating: Creating,
): Promise<Measured> {
  const pids = servers.map(({ pid }) => pid)
  const { result, cost } = await metered(service, () => create(servers.slice(0, count), creating), pids)
  await deleteMade(service.main.url, result)
  const sum = (name: 'count' | 'perSecond' | 'loadCores') =>
    result.reduce((total, one) => total + one[name], 0)
  return { value: sum('perSecond'), unit: '/s', cpu: each(cost, sum('count'), sum('loadCores')) }
}
