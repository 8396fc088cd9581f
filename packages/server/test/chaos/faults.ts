import { setTimeout as delay } from 'node:timers/promises'
import { clockOf } from '@slipway/testing/postgres/clock.ts'
import { type Cluster, hosts, hourMs, leaseMs } from './cluster.ts'
import type { History } from './history.ts'
import { Random } from './random.ts'

/** The relative frequency of each kind of fault. */
const weights = {
  killWorker: 8,
  killApi: 8,
  killPostgres: 3,
  shiftClock: 4,
  freeze: 8,
  dropConnections: 12,
  cutWire: 5,
  stallWire: 5,
  blackHole: 2,
  silentProxy: 2,
  readOnly: 2,
  stepClock: 4,
  stallLog: 4,
  engine: 36,
  loseHost: 6,
  crashGuest: 5,
}

const engineMethods = [
  ...['ensureVm', 'powerVm', 'removeVm', 'inspectVm', 'applyFirewall', 'attachDisk', 'detachDisk'],
  ...['ensureDisk', 'growDisk', 'removeDisk', 'inspectDisk'],
]
const engineKinds = ['fail', 'reject', 'lie', 'forget', 'delay'] as const
/** The duration of a `delay`, which is longer than every lease. */
const hangMs = 2 * leaseMs

export interface Fault {
  kind: keyof typeof weights
  /** The pause before the fault. */
  pauseMs: number
  /** The duration, for faults that have one. */
  ms: number
  /** Chooses among the members, hosts or guests that can be affected. */
  target: number
  method: string
  engineKind: (typeof engineKinds)[number]
}

/** The faults that a seed produces. They do not depend on how the service behaves. */
export function planOf(seed: number, count: number): Fault[] {
  const random = new Random(seed)
  return Array.from({ length: count }, () => ({
    kind: random.weighted(weights),
    pauseMs: random.between(50, 700),
    ms: random.between(200, 2 * leaseMs),
    target: random.between(0, 999),
    method: random.pick(engineMethods),
    engineKind: random.pick(engineKinds),
  }))
}

/** Applies the plan to the cluster. Faults with a duration overlap with the following ones. */
export class Faults {
  readonly #cluster: Cluster
  readonly #history: History
  readonly #lasting = new Set<Promise<void>>()

  constructor(cluster: Cluster, history: History) {
    this.#cluster = cluster
    this.#history = history
  }

  async run(plan: Fault[]): Promise<void> {
    for (const [index, fault] of plan.entries()) {
      await delay(fault.pauseMs)
      this.#history.note(`fault ${index + 1}: ${describe(fault, this.#victim(fault).name)}`)
      await this.#do(fault)
    }
    await Promise.all(this.#lasting)
    await this.#cluster.sql('DELETE FROM simulated_faults')
  }

  async #do(fault: Fault): Promise<void> {
    const { ms, target, method, engineKind } = fault
    const victim = this.#victim(fault)
    const { wire } = victim.options
    switch (fault.kind) {
      case 'killWorker':
      case 'killApi':
        return victim.kill()
      case 'shiftClock':
        return victim.kill([hourMs, 0, -hourMs][target % 3]!)
      case 'killPostgres':
        return this.#cluster.killPostgres()
      case 'freeze':
        victim.signal('SIGSTOP')
        return this.#later(leaseMs + ms, async () => victim.signal('SIGCONT'))
      case 'dropConnections':
        return wire.drop()
      case 'cutWire':
        await wire.cut()
        return this.#later(ms, () => wire.restore())
      case 'stallWire':
        wire.stall()
        return this.#later(ms, async () => wire.flow())
      case 'blackHole':
        return wire.silence()
      case 'silentProxy':
        wire.stall()
        return this.#later(ms, async () => wire.silence())
      case 'readOnly':
        await this.#cluster.setReadOnly(true)
        return this.#later(ms, () => this.#cluster.setReadOnly(false))
      case 'stepClock':
        return this.#stepClock(target)
      case 'stallLog': {
        const resume = victim.pauseLog()
        return this.#later(ms, async () => resume())
      }
      case 'engine':
        await this.#cluster.sql('INSERT INTO simulated_faults (method, kind, delay_ms) VALUES ($1, $2, $3)', [
          method,
          engineKind,
          engineKind === 'delay' ? hangMs : 0,
        ])
        return
      case 'loseHost':
        return this.#loseHost(hosts[target % hosts.length]!, ms)
      case 'crashGuest':
        return this.#crashGuest(target)
    }
  }

  /** Moves PostgreSQL's clock forward past every lease, or back to the correct time. */
  async #stepClock(target: number): Promise<void> {
    const clock = clockOf((text, values) => this.#cluster.sql(text, values))
    await (target % 2 === 0 ? clock.addAhead(`${5 * leaseMs} milliseconds`) : clock.setAhead('0'))
  }

  /** Loses a host, and makes its last report old, so that the host counts as down before it returns. */
  async #loseHost({ location, name }: (typeof hosts)[number], ms: number): Promise<void> {
    const lose = 'UPDATE simulated_hosts SET is_lost = $3 WHERE location = $1 AND name = $2'
    await this.#cluster.sql(lose, [location, name, true])
    await this.#cluster.sql(
      `UPDATE host_reports SET reported_at = reported_at - interval '1 minute'
       WHERE host_id = (SELECT id FROM hosts WHERE location = $1 AND name = $2)`,
      [location, name],
    )
    this.#later(leaseMs + ms, async () => void (await this.#cluster.sql(lose, [location, name, false])))
  }

  async #crashGuest(target: number): Promise<void> {
    await this.#cluster.sql(
      `UPDATE simulated_vms SET power = 'crashed' WHERE id = (
         SELECT id FROM simulated_vms WHERE NOT is_removed AND power = 'on'
         ORDER BY id OFFSET $1 % greatest(1, (SELECT count(*) FROM simulated_vms WHERE NOT is_removed AND power = 'on'))
         LIMIT 1)`,
      [target],
    )
  }

  #victim({ kind, target }: Fault) {
    const role = roleOf[kind]
    const fitting = this.#cluster.members.filter(({ options }) => !role || options.role === role)
    return fitting[target % fitting.length]!
  }

  #later(ms: number, repair: () => Promise<void>): void {
    const lasting = delay(ms).then(repair)
    this.#lasting.add(lasting)
    lasting.finally(() => this.#lasting.delete(lasting))
  }
}

const roleOf: Partial<Record<Fault['kind'], 'api' | 'worker'>> = { killApi: 'api', killWorker: 'worker' }

function describe({ kind, method, engineKind, ms, target }: Fault, victim: string): string {
  if (kind === 'engine') return `the engine will ${engineKind} the next ${method}`
  if (kind === 'loseHost')
    return `lose the host ${JSON.stringify(hosts[target % hosts.length])} for ${leaseMs + ms} ms`
  if (kind === 'killPostgres' || kind === 'crashGuest') return kind
  if (kind === 'readOnly') return `${kind} (${ms} ms)`
  if (kind === 'stepClock') return `${kind} ${target % 2 === 0 ? 'forward' : 'back'}`
  return `${kind} ${victim} (${ms} ms)`
}
