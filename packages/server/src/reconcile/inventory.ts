import { chunksOf } from '../domain/lists.ts'
import { EngineError, EngineUnreadable, type HostReport } from '../engines/engine.ts'
import { readServiceTime } from '../postgres/ping.ts'
import { withinLimit } from '../runner/limit.ts'
import type { Services } from '../services.ts'
import { markDrainedHosts } from '../store/fleet/fleet.ts'
import { listForgottenHosts } from '../store/fleet/forgotten-hosts.ts'
import type { ReportRequest } from '../store/fleet/host-reports.ts'
import { beginInspection, type Inspection } from '../store/fleet/inspections.ts'
import { listUnservedLocations, silenceMs } from '../store/fleet/locations.ts'
import { reconcileCordons } from './cordons.ts'
import { protectReturningHosts } from './firewalls.ts'
import { freeReportedGpus } from './gpus.ts'
import { applyHostFaults } from './health.ts'
import {
  applyChangedReports,
  type ChangedReport,
  endInspection,
  findChangedReports,
  markLostHosts,
  markUnreachableHosts,
} from './host-reports.ts'
import { Orphans } from './orphans.ts'
import { adoptGenerations } from './restored.ts'
import { reconcileLostVms, reconcileVms } from './vm-states.ts'

/** The time limit for an engine to report one batch. */
const stallMs = 20_000
/** The time limit of one inspection; after that, lost hosts are marked. */
const passMs = 300_000
const hostsPerBatch = 500
const maxProblemLength = 500
/** How many hosts are compared together: few enough that comparing their VMs does not take a long time. */
const hostsPerComparison = 50
/**
 * In a larger fleet, each inspection compares only this many hosts, so that its duration does not grow with
 * the fleet.
 */
const hostsPerDetailedInspection = 500

/** One inspection of a location. */
interface Pass {
  location: string
  inspection: Inspection
  asked: ReportRequest
  mayBeBrief: boolean
  signal: AbortSignal
}

/** Reads the reports of each engine in batches, and reconciles the database with every batch. */
export class Inventory {
  readonly #services: Services
  readonly #orphans: Orphans

  constructor(services: Services) {
    this.#services = services
    this.#orphans = new Orphans(services)
  }

  /** Reconciles all locations concurrently, so that a slow engine does not delay the others. */
  async reconcile(stopping: AbortSignal): Promise<void> {
    const locations = [...this.#services.engines.keys()]
    await Promise.all(locations.map((location) => this.reconcileLocation(location, stopping)))
    await this.reconcileLost(stopping)
  }

  /**
   * Reconciles one location. Its silent hosts are marked as down even if its engine fails or hangs. Returns
   * whether the engine has responded and all hosts are up.
   */
  async reconcileLocation(location: string, stopping: AbortSignal): Promise<boolean> {
    const { database, log } = this.#services
    const inspection = await beginInspection(database, location, hostsPerDetailedInspection)
    let problem = ''
    let unreadMs = 0
    try {
      await withinLimit(stopping, passMs, (signal) => this.#read(location, inspection, signal))
    } catch (error) {
      if (stopping.aborted) return false
      log.warn({ err: error, location }, 'location not reconciled, will retry')
      problem = problemOf(error)
      if (error instanceof EngineUnreadable) unreadMs = error.toleranceMs
    }
    return await endInspection(database, location, { inspection, problem, unreadMs })
  }

  /** Reconciles the VMs of lost hosts, and marks lost hosts in locations that no worker serves. */
  async reconcileLost(signal: AbortSignal): Promise<void> {
    const { database, engines } = this.#services
    const locations = await listUnservedLocations(database, [...engines.keys()])
    if (locations.length > 0) await markLostHosts(database, silenceMs, { locations })
    await reconcileLostVms(this.#services, silenceMs, signal)
    await database.transaction((tx) => markDrainedHosts(tx))
  }

  async #read(location: string, inspection: Inspection, signal: AbortSignal): Promise<void> {
    const asked = { askedAt: inspection.begunAt, inspection: inspection.number }
    // Summaries are not enough while GPUs are in quarantine or generations have to be adopted.
    const mayBeBrief = !inspection.hasQuarantined && !this.#services.config.operations.restored
    const pass = { location, inspection, asked, mayBeBrief, signal }
    const changed = await this.#inspect(pass, () => true)
    if (changed.size === 0) return
    const isDetailed = (host: string) => changed.has(host)
    const askedAt = await readServiceTime(this.#services.database)
    const detailedPass = {
      ...{ ...pass, inspection: { ...inspection, isDetailed }, asked: { ...asked, askedAt } },
      mayBeBrief: false,
    }
    await this.#inspect(detailedPass, isDetailed)
  }

  /**
   * Applies the reports of the hosts for which `isIncluded` is true. Returns the hosts whose summary shows a
   * change.
   */
  async #inspect(pass: Pass, isIncluded: (host: string) => boolean): Promise<Set<string>> {
    const { location, inspection, mayBeBrief, signal } = pass
    const { database, engines, stepMs } = this.#services
    const engine = engines.get(location)!
    const reports = engine.inventory(signal, inspection.isDetailed, mayBeBrief)[Symbol.asyncIterator]()
    const changed = new Set<string>()
    let { asked } = pass
    for (;;) {
      const batch = await withinLimit(signal, stepMs ?? stallMs, () => nextOf(reports, hostsPerBatch))
      const included = batch.filter(({ name }) => isIncluded(name))
      for (const host of await this.#apply({ ...pass, asked }, included)) changed.add(host)
      if (batch.length < hostsPerBatch) return changed
      asked = { ...asked, askedAt: await readServiceTime(database) }
    }
  }

  /** Returns the hosts whose summary shows a change. */
  async #apply(pass: Pass, reports: HostReport[]): Promise<string[]> {
    const { location, asked } = pass
    const { database } = this.#services
    const present = reports.filter(({ isUnreachable }) => !isUnreachable)
    const unreachable = reports.filter(({ isUnreachable }) => isUnreachable)
    const changed = await findChangedReports(database, location, present, asked)
    // A host with an unchanged report is up, so it cannot have been forgotten.
    const mayBeForgotten = changed.length > 0 || unreachable.length > 0
    const forgotten = mayBeForgotten ? await listForgottenHosts(database, location) : new Set<string>()
    const isKnown = ({ name }: { name: string }) => !forgotten.has(name)
    const knownUnreachable = unreachable.filter(isKnown).map(({ name }) => name)
    await markUnreachableHosts(database, location, knownUnreachable)
    const knownChanged = changed.filter(isKnown)
    const detailed = present.filter((report) => !report.isSummary && isKnown(report))
    const detailedChanged = knownChanged.filter(({ report }) => !report.isSummary)
    if (detailed.length > 0) await this.#compare(pass, detailed, detailedChanged)
    await reconcileCordons(this.#services, location, present.filter(isKnown), pass.signal)
    return knownChanged.filter(({ report }) => report.isSummary).map(({ name }) => name)
  }

  async #compare(pass: Pass, reports: HostReport[], changed: ChangedReport[]): Promise<void> {
    const { location, inspection, asked, signal } = pass
    const { database, config } = this.#services
    const inspectedAt = inspection.begunAt
    const engineName = config.locations.find(({ name }) => name === location)?.engine ?? 'simulated'
    if (changed.length > 0) {
      const changedReports = changed.map(({ report }) => report)
      await protectReturningHosts(this.#services, location, changedReports, signal)
      // If the inspection has exceeded its time limit, another process may have acted in the meantime.
      signal.throwIfAborted()
      await applyChangedReports(database, location, engineName, changed, asked)
    }
    if (config.operations.restored) await adoptGenerations(this.#services, location, reports)
    for (const part of chunksOf(reports, hostsPerComparison)) {
      await reconcileVms(this.#services, location, part, signal)
      await this.#orphans.remove(location, part, inspectedAt, signal)
    }
    if (changed.length > 0 || inspection.hasFaults) await applyHostFaults(this.#services, location)
    if (inspection.hasQuarantined) await freeReportedGpus(database, location, reports, inspectedAt)
  }
}

/** Returns the text for operators. Errors that the engine did not cause are only in the log. */
const problemOf = (error: unknown): string =>
  error instanceof EngineError
    ? error.message.slice(0, maxProblemLength)
    : 'The inspection failed; see the log.'

/**
 * Returns at most `limit` items. It does not use `for await`, because a loop that ends early would wait for a
 * generator that hangs.
 */
async function nextOf<T>(source: AsyncIterator<T>, limit: number): Promise<T[]> {
  const items: T[] = []
  while (items.length < limit) {
    const { value, done } = await source.next()
    if (done) break
    items.push(value)
  }
  return items
}
