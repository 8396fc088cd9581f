import { availableParallelism } from 'node:os'
import type { Effort } from './effort.ts'
import { type Figure, isBusy, median, ratioAtLeast } from './figures.ts'
import { addTenants, type Tenant } from './fixtures.ts'
import { startBareRoutes } from './limits.ts'
import { type ChangedVm, deleteVms, type LoadResult, read, runLoad } from './load.ts'
import { cpuEach, measureCost } from './meter.ts'
import { recordResponse, type Vms } from './reads.ts'
import { locations, type RunningService, type ServerProcess } from './running-service.ts'

const connections = 64

const counts = [1, 2, 4]

/**
 * Measures GETs and creations with one, two and four API processes on the same database. GETs come first,
 * because PostgreSQL and the hosts stay busy for a while after creations. While creations are measured, all
 * four processes run, and one, two or four of them in turn get requests, after a warm-up.
 */
export async function measureProcesses(service: RunningService, vms: Vms, effort: Effort): Promise<Figure[]> {
  const tenants = await addTenants(service.database, 'processes', 8, 1)
  const servers: ServerProcess[] = [service.main]
  const reads = new Map<number, Measured>()
  const bare = new Map<number, Measured>()
  for (const count of counts) {
    while (servers.length < count) servers.push(await service.startProcess('api'))
    reads.set(count, await readFrom(service, servers, vms.map(pathOf), vms[0].token, effort))
    bare.set(count, await readBare(service, count, vms, effort))
  }
  const first = await create(servers, { tenants, location: locations[0], count: effort.firstCreations })
  await deleteVms(service.main.url, first)
  const creations = new Map<number, Measured[]>(counts.map((count) => [count, []]))
  for (let round = 0; round < Math.max(1, effort.rounds); round++)
    for (let turn = 0; turn < counts.length; turn++) {
      // In three rounds, each count comes first, second and last once.
      const count = counts[(round + turn) % counts.length]!
      // GPUs of deleted VMs are not free immediately, so the next turn uses the other location.
      const location = locations[(round + turn + 1) % locations.length]!
      const creating = { tenants, location, seconds: effort.changeSeconds / 2 }
      creations.get(count)!.push(await createAt(service, servers, count, creating))
    }
  for (const other of servers.slice(1)) await other.stop()
  return counts.flatMap((count) => {
    const processes = `${count} API process${count === 1 ? '' : 'es'}`
    const cores = `${availableParallelism()} cores`
    const read = comparedWithOne(reads.get(count)!, reads.get(1)!)
    return [
      {
        id: `get-vm-processes-${count}`,
        what: `GET VM, ${connections} connections, ${processes} on ${cores}`,
        ...withBaseline(read, `bare route, ${count} process${count === 1 ? '' : 'es'}`, bare.get(count)!),
      },
      {
        id: `creations-processes-${count}`,
        what: `Creations, ${connections} clients, requests to ${count} of ${counts.at(-1)} running API processes on ${cores}`,
        ...comparedWithOne(middleOf(creations.get(count)!), middleOf(creations.get(1)!)),
      },
    ]
  })
}

/**
 * Compares a measurement with that of one process. More processes may not help if no core is free for them,
 * but they must not make the service slower.
 */
function comparedWithOne(measured: Measured, alone: Measured): Measured {
  if (measured === alone) return measured
  const isBound = [measured, alone].some(({ cpu }) => isBusy(cpu!.loadCores))
  const ratio = isBound ? null : measured.value / alone.value
  const baseline = { what: 'one process', value: alone.value, ratio }
  return { ...measured, limits: [baseline], aim: ratioAtLeast(baseline, 0.9, 'rate of one process') }
}

type Measured = Omit<Figure, 'id' | 'what'>

const withBaseline = (measured: Measured, what: string, { value, cpu }: Measured): Measured => ({
  ...measured,
  limits: [
    ...(measured.limits ?? []),
    { what, value, ratio: isBusy(cpu!.loadCores) ? null : measured.value / value },
  ],
})

const pathOf = ({ projectId, vmId }: ChangedVm) => `/v0.1/projects/${projectId}/vms/${vmId}`

/**
 * Measures the same number of processes that only send the same bytes, because any service becomes slower
 * with more processes than cores.
 */
async function readBare(service: RunningService, count: number, vms: Vms, effort: Effort): Promise<Measured> {
  const { databaseUrl } = service
  const vmIds = vms.map(({ vmId }) => vmId)
  const responses = { vm: await recordResponse(service, pathOf(vms[0]), vms[0].token) }
  const servers = await Promise.all(
    Array.from({ length: count }, () => startBareRoutes({ databaseUrl, responses, vmIds, ...vms[0] })),
  )
  try {
    return await readFrom(service, servers, ['/vm/bare'], vms[0].token, effort)
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
  // A process that has just started is still compiling its code. This takes longer if more processes share
  // the cores.
  await Promise.all(servers.map(readOne(effort.readSeconds * servers.length)))
  const rounds: Measured[] = []
  for (let round = 0; round < Math.max(1, effort.rounds); round++) {
    const pids = servers.map(({ pid }) => pid)
    const { result, cost } = await measureCost(
      service,
      () => Promise.all(servers.map(readOne(effort.readSeconds))),
      pids,
    )
    const sum = (name: 'count' | 'perSecond') => result.reduce((total, one) => total + one[name], 0)
    // If the readers are child processes, each value includes the CPU time of readers that ended earlier, so
    // the largest value covers all of them.
    const loadCores = Math.max(...result.map((one) => one.loadCores))
    rounds.push({ value: sum('perSecond'), unit: '/s', cpu: cpuEach(cost, sum('count'), loadCores) })
  }
  return middleOf(rounds)
}

function middleOf(rounds: Measured[]): Measured {
  const middle = median(rounds.map(({ value }) => value))
  return rounds.find(({ value }) => value === middle)!
}

type Creating = { tenants: Tenant[]; location: string } & ({ count: number } | { seconds: number })

/** Creates VMs through all servers concurrently, with the same total number of clients. */
const create = (servers: ServerProcess[], how: Creating): Promise<LoadResult[]> =>
  Promise.all(
    servers.map(({ url }) => runLoad({ kind: 'create', url, clients: connections / servers.length, ...how })),
  )

/**
 * Measures creations while all processes run and `count` of them get requests. The CPU time of the others,
 * which only receive signals, is included.
 */
async function createAt(
  service: RunningService,
  servers: ServerProcess[],
  count: number,
  creating: Creating,
): Promise<Measured> {
  const pids = servers.map(({ pid }) => pid)
  const { result, cost } = await measureCost(service, () => create(servers.slice(0, count), creating), pids)
  await deleteVms(service.main.url, result)
  const sum = (name: 'count' | 'perSecond' | 'loadCores') =>
    result.reduce((total, one) => total + one[name], 0)
  return { value: sum('perSecond'), unit: '/s', cpu: cpuEach(cost, sum('count'), sum('loadCores')) }
}
