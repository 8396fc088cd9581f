import { cpuMs, familyCpuMs } from './cpu.ts'
import type { Effort } from './effort.ts'
import { atLeast, atMost, both, type Figure, isBusy, median, ratioAtLeast } from './figures.ts'
import { type Answer, type BareRoutes, startBareRoutes } from './limits.ts'
import { type Made, type Reading, read } from './load.ts'
import type { RunningService } from './running-service.ts'

/** Somewhere to read from, and the process that answers. */
interface Target {
  what: string
  url: string
  paths: string[]
  token: string
  pid: number
  postmaster: number
}

export type Vms = [Made, ...Made[]]

interface Measured {
  perSecond: number
  p50: number
  p99: number
  serverMs: number
  postgresMs: number
  loadCores: number
}

/** What is read: single records at random, one VM over and over, a page, and what is available. */
function pathsOf(made: Vms) {
  const baseOf = ({ projectId }: Made) => `/v0.1/projects/${projectId}`
  const [first] = made
  return {
    vm: made.map((each) => `${baseOf(each)}/vms/${each.vmId}`),
    polling: [`${baseOf(first)}/vms/${first.vmId}`],
    operation: made.map((each) => `${baseOf(each)}/vms/operations/${each.operationId}`),
    list: [`${baseOf(first)}/vms?limit=100`],
    availabilities: [`${baseOf(first)}/availabilities`],
  }
}
type Name = keyof ReturnType<typeof pathsOf>

const whats: Record<Name, string> = {
  vm: 'GET VM',
  polling: 'GET of one VM over and over',
  operation: 'GET operation',
  list: 'List of 100 VMs',
  availabilities: 'Availabilities',
}

function ownTarget({ main, postmaster }: RunningService, made: Vms, name: Name, what: string): Target {
  const { url, pid } = main
  return { what, url, paths: pathsOf(made)[name], token: made[0].token, pid, postmaster }
}

/** Each beside bare routes that send the same bytes. */
export async function measureReads(service: RunningService, made: Vms, effort: Effort): Promise<Figure[]> {
  const [{ projectId, token }] = made
  const answers: Record<string, Answer> = {}
  for (const [name, [path]] of Object.entries(pathsOf(made)))
    answers[name] = await answerOf(service, path!, token)
  const { databaseUrl } = service
  const vmIds = made.map(({ vmId }) => vmId)
  const bare = await startBareRoutes({ databaseUrl, token, vmIds, projectId, answers })
  const compare = (name: Name, connections: number, kinds: BareKind[]) => {
    const own = ownTarget(service, made, name, plural(whats[name], connections))
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
    list.aim = ratioAtLeast(list.limits![0]!, 0.6, 'same bytes after one SELECT')
    const availabilities = await compare('availabilities', 16, ['bare', 'row'])
    availabilities.id = 'availabilities'
    availabilities.aim = atLeast(availabilities.value, 5_000, '/s')
    return [...figures, list, availabilities]
  } finally {
    bare.stop()
  }
}

/** A service and what is read of it. */
export interface Read {
  service: RunningService
  made: Vms
}

/** The figures of one service, with those of another as their limit. */
export async function measureReadsBeside(own: Read, other: Read, effort: Effort): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const name of Object.keys(whats) as Name[]) {
    const target = ({ service, made }: Read) => ownTarget(service, made, name, plural(whats[name], 16))
    const figure = await compareWith([target(own), target(other)], 16, effort)
    figures.push({ ...figure, id: name })
  }
  return figures
}

const plural = (what: string, connections: number) =>
  `${what}, ${connections} connection${connections === 1 ? '' : 's'}`

/** The aimed ratio to the bare route, by the number of connections: the more there are, the more reads share a statement. */
const leastOfBare: Record<number, number> = { 16: 0.4, 64: 0.5 }

function aimOf({ limits, cpu }: Figure, connections: number) {
  const [bare, row] = limits!
  return connections === 1
    ? ratioAtLeast(row!, 1, 'route with one SELECT')
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

/** The first target is ours, the others are its limits. */
async function compareWith(targets: Target[], connections: number, effort: Effort): Promise<Figure> {
  const [own, ...others] = await inTurns(targets, connections, effort)
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
      // The ratio of each round by itself: the machine may be twice as fast in one as in another.
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
      'server CPU ms of the first limit': middle(others[0]!, 'serverMs'),
    },
  }
}

const turnSeconds = 1

/** The rounds of each target: short ones that take turns, so that whatever else the machine does meets all alike. */
async function inTurns(targets: Target[], connections: number, effort: Effort): Promise<Measured[][]> {
  const rounds = targets.map((): Measured[] => [])
  const count = (effort.rounds * effort.readSeconds) / turnSeconds
  for (let round = 0; round <= count; round++)
    for (const [index, target] of targets.entries()) {
      // The first round warms up what compiles itself while it runs, which takes thousands of requests.
      const isWarmUp = round === 0 && count > 0
      const load = isWarmUp ? { connections: 16, seconds: 3 } : { connections, seconds: turnSeconds }
      const measured = await once({ ...target, ...load }, target)
      if (!isWarmUp) rounds[index]!.push(measured)
    }
  return rounds
}

async function once(reading: Reading, { pid, postmaster }: Target): Promise<Measured> {
  const [server, postgres] = [cpuMs(pid), familyCpuMs(postmaster)]
  const { count, perSecond, p50, p99, loadCores } = await read(reading)
  const serverMs = (cpuMs(pid) - server) / count
  const postgresMs = (familyCpuMs(postmaster) - postgres) / count
  return { perSecond, p50, p99, serverMs, postgresMs, loadCores }
}

export async function answerOf({ main }: RunningService, path: string, token: string): Promise<Answer> {
  const answer = await fetch(main.url + path, { headers: { authorization: `Bearer ${token}` } })
  const body = await answer.text()
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${body}`)
  // These are added by Node itself.
  const own = ['connection', 'keep-alive', 'date', 'content-length']
  const headers = Object.fromEntries([...answer.headers].filter(([name]) => !own.includes(name)))
  return { headers, body }
}
