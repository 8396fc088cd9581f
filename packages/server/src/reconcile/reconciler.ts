import { setTimeout as delay } from 'node:timers/promises'
import { PeriodicTasks } from '../runner/periodic.ts'
import { type Turn, Turns } from '../runner/turns.ts'
import type { DueTask, Services } from '../services.ts'
import type { WorkKind } from '../store/fleet/due.ts'
import { listEngineAnswers, reportsTurn } from '../store/fleet/locations.ts'
import { expireVms, warnOfExpiry } from './expiry.ts'
import { Firewalls } from './firewalls.ts'
import { Hints } from './hints.ts'
import { Inventory } from './inventory.ts'
import { pruneOld } from './retention.ts'
import { Stamper } from './stamper.ts'
import { stopSuspendedVms } from './suspension.ts'

const tickMs = 1_000
const reportMs = 2_000
const pruneMs = 300_000
/**
 * How long the inventory of a simulated location rests: its hosts change by our own doing alone. It is less than the
 * silence after which a location counts as unserved, with the time between two looks for due work.
 */
const simulatedRestMs = 24_000
const callMs = 60_000
/** How long a start waits for engines that are slow to say what they have. */
const firstReportsMs = 5_000
/**
 * At most a tenth of the time goes into looking, however large the fleet; but a host that is lost shows within a minute.
 * Stamping does not rest: somebody waits.
 */
const rest = { factor: 9, longestMs: 20_000 }

/**
 * Compares what should be with what is, and acts. It takes no input and may run at any time, in any number of processes,
 * which take turns; an engine's hint only makes it look sooner. This class is the schedule: what is done is in the files
 * beside it.
 */
export class Reconciler {
  readonly #services: Services
  readonly #tasks: PeriodicTasks
  readonly #firewalls: Firewalls
  readonly #turns: Turns
  readonly #inventory: Inventory
  readonly #stamper: Stamper

  constructor(services: Services) {
    this.#services = services
    this.#tasks = new PeriodicTasks((err) => services.log.warn({ err }, 'reconciler failed'))
    this.#firewalls = new Firewalls(services)
    this.#turns = new Turns(services)
    this.#inventory = new Inventory(services)
    this.#stamper = new Stamper(services)
  }

  /** Resolves when the fleet is known, as far as its engines answer. */
  async start(): Promise<void> {
    await Promise.race([this.#firstReports(), delay(firstReportsMs, undefined, { ref: false })])
    const { engines, log } = this.#services
    if (this.#isRestored)
      log.warn({}, 'operations.restored is set: until it is not, nothing expires or is removed')
    // All locations together have that tenth.
    const restOfEach = { ...rest, factor: (rest.factor + 1) * engines.size - 1 }
    for (const location of engines.keys())
      this.#inTurn(
        { restMs: this.#isSimulated(location) ? simulatedRestMs : 0 },
        { name: reportsTurn(location), everyMs: reportMs, rest: restOfEach },
        (signal) => this.#inventory.location(location, signal),
      )
    this.#inTurn({ kind: 'hosts' }, { name: 'lost hosts', everyMs: reportMs, rest }, (signal) =>
      this.#inventory.lost(signal),
    )
    this.#inTurn({ kind: 'expiry' }, { name: 'expiry', everyMs: tickMs, rest }, () => this.expiry())
    this.#inTurn({ kind: 'suspension' }, { name: 'suspension', everyMs: tickMs, rest }, () =>
      this.suspension(),
    )
    this.#inTurn({}, { name: 'retention', everyMs: pruneMs, rest }, (signal) =>
      pruneOld(this.#services, signal),
    )
    this.#when('firewalls', () => this.#firewalls.begin(this.#tasks.stopping))
    this.#when('events', () => this.stamp())
    const hints = new Hints(this.#services, this.#tasks.stopping)
    const unsubscribe = [...engines.values()].map((engine) => engine.watch((vmId) => hints.hear(vmId)))
    unsubscribe.push(this.#stamper.start())
    for (const each of unsubscribe) this.#tasks.stopping.addEventListener('abort', each)
  }

  async stop(): Promise<void> {
    const stopped = Promise.all([this.#tasks.stop(), this.#firewalls.idle()])
    await Promise.race([stopped, delay(3_000)])
    await this.#turns.release().catch(() => {})
  }

  /** Everything once, in order: for tests and for whoever cannot wait. */
  async once(): Promise<void> {
    await this.reports()
    await this.firewalls()
    await this.expiry()
    await this.suspension()
    await this.prune()
  }

  /** Hosts, GPUs and VMs as the engines report them. */
  reports(): Promise<void> {
    return this.#inventory.reconcile(this.#tasks.stopping)
  }

  /** VMs whose engine lacks what their rules say, until none is due. */
  firewalls(): Promise<void> {
    return this.#firewalls.finish(this.#limit())
  }

  /** VMs whose time is up are stopped or deleted; ten minutes before, their owners are told. */
  async expiry(): Promise<void> {
    await warnOfExpiry(this.#services)
    if (!this.#isRestored) await expireVms(this.#services)
  }

  /** Suspended organizations whose VMs are to stop have none running. */
  async suspension(): Promise<void> {
    if (!this.#isRestored) await stopSuspendedVms(this.#services)
  }

  /** What a backup says of time and of suspensions may no longer be so: nothing is stopped or deleted by it. */
  get #isRestored(): boolean {
    return this.#services.config.operations.restored
  }

  /** Gives new events their positions. */
  stamp(): Promise<void> {
    return this.#stamper.stamp()
  }

  prune(): Promise<void> {
    return pruneOld(this.#services)
  }

  /**
   * Of engines that were not read lately: what the store has of the others is good until their next turn, so that a start
   * takes no longer where there are many VMs.
   */
  async #firstReports(): Promise<void> {
    const { database, engines } = this.#services
    const answers = await listEngineAnswers(database)
    const silent = answers.filter(({ location, is_answering }) => engines.has(location) && !is_answering)
    const { stopping } = this.#tasks
    await Promise.all(silent.map(({ location }) => this.#inventory.location(location, stopping)))
  }

  #isSimulated(location: string): boolean {
    const { locations } = this.#services.config
    return locations.find(({ name }) => name === location)?.engine === 'simulated'
  }

  /** Does `work` whenever the store has work of this kind. */
  #when(kind: WorkKind, work: () => Promise<unknown>): void {
    this.#tasks.upon((call) => this.#services.due.on({ kind }, call), work)
  }

  /** Does `work` when its turn is due, which one process takes for all. */
  #inTurn(due: DueTask, turn: Turn, work: (signal: AbortSignal) => Promise<void>): void {
    const { stopping } = this.#tasks
    this.#tasks.upon(
      (call) => this.#services.due.on({ ...due, turn: turn.name, everyMs: turn.everyMs }, call),
      () => this.#turns.take(turn, (lost) => work(AbortSignal.any([stopping, lost]))),
    )
  }

  #limit(): AbortSignal {
    return AbortSignal.any([this.#tasks.stopping, AbortSignal.timeout(callMs)])
  }
}
