import { setTimeout as delay } from 'node:timers/promises'
import { PeriodicTasks, type Rest } from '../runner/periodic.ts'
import { Turns } from '../runner/turns.ts'
import type { Services } from '../services.ts'
import { listEngineAnswers } from '../store/fleet/locations.ts'
import { expireVms, warnOfExpiry } from './expiry.ts'
import { Firewalls } from './firewalls.ts'
import { Hints } from './hints.ts'
import { Inventory, reportsTurn } from './inventory.ts'
import { pruneOld } from './retention.ts'
import { Stamper } from './stamper.ts'
import { stopSuspendedVms } from './suspension.ts'

const tickMs = 1_000
const reportMs = 2_000
const pruneMs = 60_000
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
      this.#share(
        reportsTurn(location),
        reportMs,
        (signal) => this.#inventory.location(location, signal),
        restOfEach,
      )
    this.#share('lost hosts', reportMs, (signal) => this.#inventory.lost(signal))
    this.#share('expiry', tickMs, () => this.expiry())
    this.#share('suspension', tickMs, () => this.suspension())
    this.#share('retention', pruneMs, (signal) => pruneOld(this.#services, signal))
    this.#tasks.every(tickMs, () => this.#firewalls.begin(this.#tasks.stopping))
    this.#tasks.every(tickMs, () => this.stamp())
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

  /** A task that is done once for all processes. */
  #share(
    name: string,
    everyMs: number,
    work: (signal: AbortSignal) => Promise<void>,
    resting: Rest = rest,
  ): void {
    const { stopping } = this.#tasks
    const turn = () =>
      this.#turns.take({ name, everyMs, rest: resting }, (lost) => work(AbortSignal.any([stopping, lost])))
    this.#tasks.every(everyMs, turn, resting)
  }

  #limit(): AbortSignal {
    return AbortSignal.any([this.#tasks.stopping, AbortSignal.timeout(callMs)])
  }
}
