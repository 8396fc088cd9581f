import { cpuMs, familyCpuMs } from './cpu.ts'
import type { Effort } from './effort.ts'
import { atLeast, atMost, both, type Figure, isBusy, median, ratioAtLeast } from './figures.ts'
import { type BareRoutes, type RecordedResponse, startBareRoutes } from './limits.ts'
import { type ChangedVm, type Reading, read } from './load.ts'
import type { RunningService } from './running-service.ts'

/** A URL to read from, and the process that responds. */
interface Target {
  what: string
  url: string
  paths: string[]
  token: string
  pid: number
  postmaster: number
}

export type Vms = [ChangedVm, ...ChangedVm[]]

interface Measured {
  perSecond: number
  p50: number
  p99: number
  serverMs: number
  postgresMs: number
  loadCores: number
}

/** Returns the paths to read: single records at random, one VM repeatedly, a page, and availabilities. */
function pathsOf(vms: Vms) {
  const baseOf = ({ projectId }: ChangedVm) => `/v0.1/projects/${projectId}`
  const [first] = vms
  return {
    vm: vms.map((each) => `${baseOf(each)}/vms/${each.vmId}`),
    polling: [`${baseOf(first)}/vms/${first.vmId}`],
    operation: vms.map((each) => `${baseOf(each)}/vms/operations/${each.operationId}`),
    list: [`${baseOf(first)}/vms?limit=100`],
    availabilities: [`${baseOf(first)}/availabilities`],
  }
}
type Name = keyof ReturnType<typeof pathsOf>

const labels: Record<Name, string> = {
  vm: 'GET VM',
  polling: 'GET of the same VM repeatedly',
  operation: 'GET operation',
  list: 'List of 100 VMs',
  availabilities: 'Availabilities',
}

function ownTarget({ main, postmaster }: RunningService, vms: Vms, name: Name, what: string): Target {
  const { url, pid } = main
  return { what, url, paths: pathsOf(vms)[name], token: vms[0].token, pid, postmaster }
}

/** Measures each read and compares it with bare routes that send the same bytes. */
export async function measureReads(service: RunningService, vms: Vms, effort: Effort): Promise<Figure[]> {
  const [{ projectId, token }] = vms
  const responses: Record<string, RecordedResponse> = {}
  for (const [name, [path]] of Object.entries(pathsOf(vms)))
    responses[name] = await recordResponse(service, path!, token)
  const { databaseUrl } = service
  const vmIds = vms.map(({ vmId }) => vmId)
  const bare = await startBareRoutes({ databaseUrl, token, vmIds, projectId, responses })
  const compare = (name: Name, connections: number, kinds: BareKind[]) => {
    const own = ownTarget(service, vms, name, plural(labels[name], connections))
    return compareWith([own, ...kinds.map((kind) => bareTarget(bare, own, name, kind))], connections, effort)
  }
  try {
    const figures: Figure[] = []
    for (const name of ['vm', 'operation'] as const)
      for (const connections of effort.connections) {
        const kinds: BareKind[] = name === 'vm' ? ['bare', 'row', 'json'] : ['bare', 'row']
        const figure = await compare(name, connections, kinds)
        figure.id = `get-${name}-${connections}`
        figure.aim = aimOf(figure, connections)
        figures.push(figure)
      }
    const polling = await compare('polling', 16, ['bare'])
    polling.id = 'poll-vm'
    polling.aim = ratioAtLeast(polling.limits![0]!, leastOfBare[16]!, 'bare route')
    figures.push(polling)
    const list = await compare('list', 16, ['row', 'page'])
    list.id = 'list-vms'
    list.aim = ratioAtLeast(list.limits![0]!, 0.6, 'bare route with one SELECT')
    const availabilities = await compare('availabilities', 16, ['bare', 'row'])
    availabilities.id = 'availabilities'
    availabilities.aim = atLeast(availabilities.value, 5_000, '/s')
    return [...figures, list, availabilities]
  } finally {
    bare.stop()
  }
}

/** A service and the VMs to read from it. */
export interface ReadSource {
  service: RunningService
  vms: Vms
}

/** Measures the reads of one service, with those of another service as baselines. */
export async function compareReads(own: ReadSource, other: ReadSource, effort: Effort): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const name of Object.keys(labels) as Name[]) {
    const target = ({ service, vms }: ReadSource) => ownTarget(service, vms, name, plural(labels[name], 16))
    const figure = await compareWith([target(own), target(other)], 16, effort)
    figures.push({ ...figure, id: name })
  }
  return figures
}

const plural = (what: string, connections: number) =>
  `${what}, ${connections} connection${connections === 1 ? '' : 's'}`

/**
 * The target ratio to the bare route, by the number of connections. With more connections, more reads share a
 * statement.
 */
const leastOfBare: Record<number, number> = { 16: 0.4, 64: 0.5 }

function aimOf({ limits, cpu }: Figure, connections: number) {
  const [bare, row] = limits!
  return connections === 1
    ? ratioAtLeast(row!, 1, 'bare route with one SELECT')
    : both(
        ratioAtLeast(bare!, leastOfBare[connections]!, 'bare route'),
        atMost(cpu!.serverMs, 0.15, 'ms of server CPU'),
      )
}

const bareKinds = {
  bare: 'bare route',
  row: 'bare route with one SELECT',
  json: 'bare route with one SELECT of JSON text',
  page: 'bare route with one SELECT of 100 rows as JSON text',
}
type BareKind = keyof typeof bareKinds

const bareTarget = ({ url, pid }: BareRoutes, own: Target, name: Name, kind: BareKind): Target => ({
  ...own,
  what: bareKinds[kind],
  url,
  paths: [`/${name}/${kind}`],
  pid,
})

/** The first target is the service; the others are its baselines. */
async function compareWith(targets: Target[], connections: number, effort: Effort): Promise<Figure> {
  const [own, ...others] = await measureInTurns(targets, connections, effort)
  const middle = (rounds: Measured[], name: keyof Measured) => median(rounds.map((round) => round[name]))
  const isBound = (rounds: Measured[]) => isBusy(middle(rounds, 'loadCores'))
  const value = middle(own!, 'perSecond')
  return {
    id: '',
    what: targets[0]!.what,
    value,
    unit: '/s',
    limits: others.map((other, index) => ({
      what: targets[index + 1]!.what,
      value: middle(other, 'perSecond'),
      // Compute the ratio for each round separately, because the machine may be twice as fast in one round as
      // in another.
      ratio:
        isBound(own!) || isBound(other)
          ? null
          : median(own!.map(({ perSecond }, round) => perSecond / other[round]!.perSecond)),
    })),
    cpu: {
      serverMs: middle(own!, 'serverMs'),
      postgresMs: middle(own!, 'postgresMs'),
      loadCores: middle(own!, 'loadCores'),
    },
    more: {
      'p50 ms': middle(own!, 'p50'),
      'p99 ms': middle(own!, 'p99'),
      'server CPU ms of the first baseline': middle(others[0]!, 'serverMs'),
    },
  }
}

const turnSeconds = 1

/**
 * Returns the rounds of each target. Short rounds alternate, so that other load on the machine affects all
 * targets equally.
 */
async function measureInTurns(targets: Target[], connections: number, effort: Effort): Promise<Measured[][]> {
  const rounds = targets.map((): Measured[] => [])
  const count = (effort.rounds * effort.readSeconds) / turnSeconds
  for (let round = 0; round <= count; round++)
    for (const [index, target] of targets.entries()) {
      // The first round is a warm-up, because compiling hot code takes thousands of requests.
      const isWarmUp = round === 0 && count > 0
      const load = isWarmUp ? { connections: 16, seconds: 3 } : { connections, seconds: turnSeconds }
      const measured = await measureOnce({ ...target, ...load }, target)
      if (!isWarmUp) rounds[index]!.push(measured)
    }
  return rounds
}

async function measureOnce(reading: Reading, { pid, postmaster }: Target): Promise<Measured> {
  const [server, postgres] = [cpuMs(pid), familyCpuMs(postmaster)]
  const { count, perSecond, p50, p99, loadCores } = await read(reading)
  const serverMs = (cpuMs(pid) - server) / count
  const postgresMs = (familyCpuMs(postmaster) - postgres) / count
  return { perSecond, p50, p99, serverMs, postgresMs, loadCores }
}

export async function recordResponse(
  { main }: RunningService,
  path: string,
  token: string,
): Promise<RecordedResponse> {
  const response = await fetch(main.url + path, { headers: { authorization: `Bearer ${token}` } })
  const body = await response.text()
  if (!response.ok) throw new Error(`${path} returned ${response.status}: ${body}`)
  // Node adds these headers itself.
  const own = ['connection', 'keep-alive', 'date', 'content-length']
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !own.includes(name)))
  return { headers, body }
}
