import { availableParallelism } from 'node:os'
import type { Effort } from './effort.ts'
import { type Figure, isBusy, median, ratioAtLeast } from './figures.ts'
import { addTenants } from './fixtures.ts'
import { startBareRoutes } from './limits.ts'
import { type Made, read, runLoad } from './load.ts'
import { each, metered } from './meter.ts'
import { answerOf } from './reads.ts'
import { locations, type RunningService, type ServerProcess } from './running-service.ts'

const connections = 64

/** GETs and creations spread over one, two and four API processes on the same store. */
export async function measureProcesses(
  service: RunningService,
  made: Made,
  effort: Effort,
): Promise<Figure[]> {
  const tenants = await addTenants(service.database, 'processes', 8, 1)
  const others: ServerProcess[] = []
  const figures: Figure[] = []
  let alone: { reads: Measured; creations: Measured } | undefined
  for (const count of [1, 2, 4]) {
    while (others.length < count - 1) others.push(await service.startProcess('api'))
    const servers = [service.main, ...others]
    const reads = await readFrom(service, servers, pathOf(made), made.token, effort)
    const bare = await readBare(service, count, made, effort)
    const creations = await createAt(service, servers, tenants, effort)
    alone ??= { reads, creations }
    const where = `${count} API process${count === 1 ? '' : 'es'} on ${availableParallelism()} cores`
    figures.push(
      {
        id: `get-vm-processes-${count}`,
        what: `GET VM, ${connections} connections, ${where}`,
        ...withLimit(beside(reads, alone.reads), `bare route, ${count} of its processes`, bare),
      },
      {
        id: `creations-processes-${count}`,
        what: `Creations, ${connections} clients, ${where}`,
        ...beside(creations, alone.creations),
      },
    )
  }
  for (const other of others) await other.stop()
  return figures
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
  made: Made,
  effort: Effort,
): Promise<Measured> {
  const { databaseUrl } = service
  const answers = { vm: await answerOf(service, pathOf(made), made.token) }
  const servers = await Promise.all(
    Array.from({ length: count }, () => startBareRoutes({ databaseUrl, answers, ...made })),
  )
  try {
    return await readFrom(service, servers, '/vm/bare', made.token, effort)
  } finally {
    for (const server of servers) server.stop()
  }
}

async function readFrom(
  service: RunningService,
  servers: { url: string; pid: number }[],
  path: string,
  token: string,
  effort: Effort,
): Promise<Measured> {
  const paths = [path]
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
    // Those that run at once all see the account of whoever ended before them: the largest is that of all.
    const loadCores = Math.max(...result.map((one) => one.loadCores))
    rounds.push({ value: sum('perSecond'), unit: '/s', cpu: each(cost, sum('count'), loadCores) })
  }
  const middle = median(rounds.map(({ value }) => value))
  return rounds.find(({ value }) => value === middle)!
}

async function createAt(
  service: RunningService,
  servers: ServerProcess[],
  tenants: Awaited<ReturnType<typeof addTenants>>,
  effort: Effort,
): Promise<Measured> {
  const clients = connections / servers.length
  const pids = servers.map(({ pid }) => pid)
  const create = (location: string, seconds: number) =>
    Promise.all(
      servers.map(({ url }) => runLoad({ kind: 'create', url, tenants, location, clients, seconds })),
    )
  // A process that has just started still compiles, and PostgreSQL plans for each of its connections. What warms them up
  // takes GPUs of another location, so that the measured creations do not run out of them.
  const first = await create(locations[0], effort.changeSeconds / 3)
  const { result, cost } = await metered(service, () => create(locations[1], effort.changeSeconds), pids)
  const sum = (name: 'count' | 'perSecond' | 'loadCores') =>
    result.reduce((total, one) => total + one[name], 0)
  const vms = [...first, ...result].flatMap(({ made }) => made)
  await runLoad({ kind: 'delete', url: service.main.url, clients: 32, count: vms.length, vms })
  return { value: sum('perSecond'), unit: '/s', cpu: each(cost, sum('count'), sum('loadCores')) }
}
