import { availableParallelism } from 'node:os'
import type { Effort } from './effort.ts'
import { type Figure, isBusy, median, ratioAtLeast } from './figures.ts'
import { addTenants } from './fixtures.ts'
import { type Made, read, runLoad } from './load.ts'
import { each, metered } from './meter.ts'
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
  let alone: { reads: number; creations: number } | undefined
  for (const count of [1, 2, 4]) {
    while (others.length < count - 1) others.push(await service.startProcess('api'))
    const servers = [service.main, ...others]
    const reads = await readFrom(service, servers, made, effort)
    const creations = await createAt(service, servers, tenants, effort)
    alone ??= { reads: reads.value, creations: creations.value }
    const limit = (value: number, limits: number) => [
      { what: 'one process', value: limits, ratio: count === 1 ? 1 : value / limits },
    ]
    const where = `${count} API process${count === 1 ? '' : 'es'} on ${availableParallelism()} cores`
    figures.push(
      { ...reads, id: `get-vm-processes-${count}`, what: `GET VM, ${connections} connections, ${where}` },
      {
        ...creations,
        id: `creations-processes-${count}`,
        what: `Creations, ${connections} clients, ${where}`,
      },
    )
    for (const [index, name] of (['reads', 'creations'] as const).entries()) {
      const figure = figures.at(index - 2)!
      const isBound = isBusy(figure.cpu!.loadCores)
      figure.limits = isBound ? [] : limit(figure.value, alone[name])
      const [one] = figure.limits
      if (one && count > 1) figure.aim = ratioAtLeast(one, 0.9, 'rate of one process')
    }
  }
  for (const other of others) await other.stop()
  return figures
}

type Measured = Omit<Figure, 'id' | 'what'>

async function readFrom(
  service: RunningService,
  servers: ServerProcess[],
  { projectId, token, vmId }: Made,
  effort: Effort,
): Promise<Measured> {
  const paths = [`/v0.1/projects/${projectId}/vms/${vmId}`]
  const share = Math.max(1, Math.round(connections / servers.length))
  const rounds: Measured[] = []
  for (let round = 0; round <= effort.rounds; round++) {
    const seconds = effort.readSeconds
    const readOne = ({ url }: ServerProcess) => read({ url, paths, token, connections: share, seconds })
    const pids = servers.map(({ pid }) => pid)
    const { result, cost } = await metered(service, () => Promise.all(servers.map(readOne)), pids)
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
  const create = { kind: 'create', tenants, location: locations[1], clients } as const
  const run = ({ url }: ServerProcess) => runLoad({ ...create, url, seconds: effort.changeSeconds })
  const { result, cost } = await metered(service, () => Promise.all(servers.map(run)), pids)
  const sum = (name: 'count' | 'perSecond' | 'loadCores') =>
    result.reduce((total, one) => total + one[name], 0)
  const vms = result.flatMap(({ made }) => made)
  await runLoad({ kind: 'delete', url: service.main.url, clients: 32, count: vms.length, vms })
  return { value: sum('perSecond'), unit: '/s', cpu: each(cost, sum('count'), sum('loadCores')) }
}
