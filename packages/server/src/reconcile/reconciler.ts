import { setTimeout as delay } from 'node:timers/promises'
import { PeriodicTasks } from '../runner/periodic.ts'
import { type SharedTask, SharedTasks } from '../runner/shared-tasks.ts'
import type { DueTask, Services } from '../services.ts'
import type { WorkKind } from '../store/fleet/due.ts'
import { listEngineStates, reportsTurn } from '../store/fleet/locations.ts'
import { CapacityQueue } from './capacity.ts'
import { ClockGuard } from './clock.ts'
import { expireVms, warnOfExpiry } from './expiry.ts'
import { Firewalls } from './firewalls.ts'
import { repairGroups } from './groups.ts'
import { applyGuestReports, replaceUnhealthyVms, resumePausedBilling } from './health.ts'
import { Hints } from './hints.ts'
import { applyIdlePolicies } from './idle.ts'
import { Inventory } from './inventory.ts'
import { announceMaintenance } from './maintenance.ts'
import { pruneOld } from './retention.ts'
import { packSamples, sampleLocation } from './samples.ts'
import { Stamper } from './stamper.ts'
import { stopSuspendedVms } from './suspension.ts'

const tickMs = 1_000
const reportMs = 2_000
/** Observing the clock is one commit. All tasks of an idle process make at most two commits a second in total. */
const clockMs = 2_000
const pruneMs = 300_000
const groupMs = 30_000
/**
 * A little less than a minute, so that every minute gets a sample. A second sample in the same minute is not
 * stored.
 */
const sampleMs = 55_000
const packMs = 300_000
/**
 * The pause between two inventories of a simulated location, where only calls by the service change hosts. The
 * pause and the time between two reads of due work are together shorter than the time after which a location
 * counts as unserved.
 */
const simulatedRestMs = 24_000
const callMs = 60_000
/** How long a start waits for the reports of slow engines. */
const firstReportsMs = 5_000
/**
 * Inspections take at most a tenth of the time, unless one takes so long that `longestMs` limits the pause after it.
 * The limit ensures that a lost host is found within a minute.
 */
const rest = { factor: 9, longestMs: 20_000 }
const longestRestMsWithDownHosts = 4_000
/**
 * Incus needs 20 seconds to notice that a cluster member is lost, so the service must add little delay. An inspection
 * of a large cluster takes seconds because it waits for members, not because it has work to do.
 */
const longestRestMsForIncus = { up: 2_500, down: 1_000 }

/**
 * Compares the database with the engines and acts on differences. It may run at any time, in any number of
 * processes, which take turns. This class is the schedule; the work is in the other files of this folder.
 */
export class Reconciler {
  readonly #services: Services
  readonly #tasks: PeriodicTasks
  readonly #firewalls: Firewalls
  readonly #sharedTasks: SharedTasks
  readonly #inventory: Inventory
  readonly #stamper: Stamper
  readonly #clock: ClockGuard
  readonly #capacity: CapacityQueue
  readonly #hints: Hints
  /** The locations that this process serves, each with the controller that ends its work. */
  readonly #served = new Map<string, AbortController>()

  constructor(services: Services) {
    this.#services = services
    this.#tasks = new PeriodicTasks((err) => services.log.warn({ err }, 'reconciler failed'))
    this.#firewalls = new Firewalls(services)
    this.#sharedTasks = new SharedTasks(services)
    this.#inventory = new Inventory(services)
    this.#stamper = new Stamper(services)
    this.#clock = new ClockGuard(services)
    this.#capacity = new CapacityQueue(services)
    this.#hints = new Hints(services, this.#tasks.stopping)
  }

  /** Resolves when the engines that respond have reported their hosts. */
  async start(): Promise<void> {
    await Promise.race([this.#firstReports(), delay(firstReportsMs, undefined, { ref: false })])
    const { engines, log } = this.#services
    if (this.#isRestored)
      log.warn({}, 'operations.restored is set: nothing expires or is removed until it is unset')
    for (const location of engines.keys()) this.serve(location)
    this.#inTurn({}, { name: 'sample chunks', everyMs: packMs, rest }, (signal) =>
      packSamples(this.#services, signal),
    )
    this.#inTurn({ kind: 'hosts' }, { name: 'lost hosts', everyMs: reportMs, rest }, (signal) =>
      this.#inventory.reconcileLost(signal),
    )
    this.#inTurn({ kind: 'expiry' }, { name: 'expiry', everyMs: tickMs, rest }, () => this.expiry())
    this.#inTurn({ kind: 'suspension' }, { name: 'suspension', everyMs: tickMs, rest }, () =>
      this.suspension(),
    )
    this.#inTurn({ kind: 'maintenance' }, { name: 'maintenance', everyMs: tickMs, rest }, () =>
      this.maintenance(),
    )
    this.#inTurn({ kind: 'capacity' }, { name: 'capacity', everyMs: 0, rest }, () => this.capacity())
    this.#tasks.runOn(
      (call) => this.#services.signals.on('capacity', call),
      () => this.capacity(),
    )
    this.#inTurn({}, { name: 'groups', everyMs: groupMs, rest }, () => this.groups())
    this.#inTurn({}, { name: 'retention', everyMs: pruneMs, rest }, (signal) =>
      pruneOld(this.#services, signal),
    )
    this.#when('firewalls', () => this.#firewalls.begin(this.#tasks.stopping))
    this.#when('events', () => this.stamp())
    this.#tasks.every(clockMs, () => this.#clock.observe())
    this.#tasks.stopping.addEventListener('abort', this.#stamper.start())
  }

  /** Starts inspecting a location whose engine is open in this process. */
  serve(location: string): void {
    const { engines } = this.#services
    const leaving = new AbortController()
    this.#served.set(location, leaving)
    this.#tasks.stopping.addEventListener('abort', () => leaving.abort())
    const unwatch = engines.get(location)!.watch((vmId) => this.#hints.add(vmId))
    leaving.signal.addEventListener('abort', unwatch)
    let areHostsUp = true
    const isIncus = this.#engineOf(location) === 'incus'
    const turn = {
      name: reportsTurn(location),
      everyMs: reportMs,
      // The factor applies to the inspections of all locations together. While a host is down, the pauses are
      // shorter, so that its return is noticed within seconds.
      get rest() {
        const longestMs = areHostsUp ? rest.longestMs : longestRestMsWithDownHosts
        return {
          longestMs: isIncus ? longestRestMsForIncus[areHostsUp ? 'up' : 'down'] : longestMs,
          factor: (rest.factor + 1) * engines.size - 1,
        }
      },
    }
    const restMs = this.#engineOf(location) === 'simulated' ? simulatedRestMs : 0
    const inspect = async (signal: AbortSignal) => {
      areHostsUp = await this.#inventory.reconcileLocation(location, signal)
    }
    this.#inTurn({ restMs }, turn, inspect, leaving.signal)
    this.#inTurn(
      {},
      { name: `samples ${location}`, everyMs: sampleMs },
      (signal) => this.#sample(location, AbortSignal.any([signal, AbortSignal.timeout(callMs)])),
      leaving.signal,
    )
  }

  /** Stops inspecting a location, and ends an inspection that is running. */
  leave(location: string): void {
    this.#served.get(location)?.abort()
    this.#served.delete(location)
  }

  async stop(): Promise<void> {
    const stopped = Promise.all([this.#tasks.stop(), this.#firewalls.whenIdle()])
    await Promise.race([stopped, delay(3_000)])
    await this.#sharedTasks.release().catch(() => {})
  }

  /** For tests: runs all tasks except sampling and stamping once, in order. */
  async once(): Promise<void> {
    await this.reports()
    await this.firewalls()
    await this.expiry()
    await this.suspension()
    await this.maintenance()
    await this.capacity()
    await this.groups()
    await this.prune()
  }

  reports(): Promise<void> {
    return this.#inventory.reconcile(this.#tasks.stopping)
  }

  /** Samples all VMs of the locations, and packs the samples of complete hours. */
  async samples(locations: Iterable<string> = this.#services.engines.keys()): Promise<void> {
    for (const location of locations) await this.#sample(location, this.#limit())
    await packSamples(this.#services, this.#tasks.stopping)
  }

  /** Policies in a restored backup may be outdated, so nothing is stopped because of them. */
  async #sample(location: string, signal: AbortSignal): Promise<void> {
    const samples = await sampleLocation(this.#services, location, signal)
    if (this.#isRestored) return
    await applyIdlePolicies(this.#services, location, samples)
    await applyGuestReports(this.#services, location, samples)
    await replaceUnhealthyVms(this.#services, location)
    await resumePausedBilling(this.#services, location)
  }

  firewalls(): Promise<void> {
    return this.#firewalls.finish(this.#limit())
  }

  async expiry(): Promise<void> {
    await warnOfExpiry(this.#services)
    // After a clock jump, operators are alerted before anything expires because of it.
    const mayExpire = await this.#clock.observe()
    if (mayExpire && !this.#isRestored) await expireVms(this.#services)
  }

  async suspension(): Promise<void> {
    if (!this.#isRestored) await stopSuspendedVms(this.#services)
  }

  maintenance(): Promise<void> {
    return announceMaintenance(this.#services)
  }

  /**
   * Expiry times and suspensions in a backup may be outdated, so nothing is stopped or deleted because of
   * them.
   */
  get #isRestored(): boolean {
    return this.#services.config.operations.restored
  }

  /** Processes the capacity queues. While `operations.restored` is set, nothing is granted or ended. */
  async capacity(): Promise<void> {
    if (!this.#isRestored) await this.#capacity.serve()
  }

  /** In a backup, members may be marked as unreachable although they are not. */
  async groups(): Promise<void> {
    if (!this.#isRestored) await repairGroups(this.#services)
  }

  stamp(): Promise<void> {
    return this.#stamper.stamp()
  }

  prune(): Promise<void> {
    return pruneOld(this.#services)
  }

  /**
   * Reads only engines that were not read recently, so that a process starts quickly. For the other engines,
   * the database is up to date.
   */
  async #firstReports(): Promise<void> {
    const { database, engines } = this.#services
    const states = await listEngineStates(database)
    const silent = states.filter(({ location, is_answering }) => engines.has(location) && !is_answering)
    const { stopping } = this.#tasks
    await Promise.all(silent.map(({ location }) => this.#inventory.reconcileLocation(location, stopping)))
  }

  #engineOf(location: string): string | undefined {
    const { locations } = this.#services.config
    return locations.find(({ name }) => name === location)?.engine
  }

  #when(kind: WorkKind, work: () => Promise<unknown>): void {
    this.#tasks.runOn((call) => this.#services.due.on({ kind }, call), work)
  }

  /** Runs `work` when its turn is due and this process gets the turn. */
  #inTurn(
    due: DueTask,
    turn: SharedTask,
    work: (signal: AbortSignal) => Promise<void>,
    until: AbortSignal = this.#tasks.stopping,
  ): void {
    this.#tasks.runOn(
      (call) => this.#services.due.on({ ...due, turn: turn.name, everyMs: turn.everyMs }, call),
      () => this.#sharedTasks.runIfDue(turn, (lost) => work(AbortSignal.any([until, lost]))),
      until,
    )
  }

  #limit(): AbortSignal {
    return AbortSignal.any([this.#tasks.stopping, AbortSignal.timeout(callMs)])
  }
}
