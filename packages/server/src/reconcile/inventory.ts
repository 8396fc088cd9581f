import { chunksOf } from '../domain/lists.ts'
import { EngineError, EngineUnreadable, type HostReport } from '../engines/engine.ts'
import { pingDatabase } from '../postgres/ping.ts'
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
  applyNews,
  endInspection,
  findNews,
  markLostHosts,
  markUnreachableHosts,
  type News,
} from './host-reports.ts'
import { Orphans } from './orphans.ts'
import { catchUp } from './restored.ts'
import { reconcileLostVms, reconcileVms } from './vm-states.ts'

/** The time limit of an engine for one batch. */
const stallMs = 20_000
/** The time limit of one inspection, after which lost hosts are marked. */
const passMs = 300_000
const hostsPerBatch = 500
const maxProblemLength = 500
/** Small enough that comparing the VMs of these hosts does not take long. */
const hostsPerComparison = 50
/** The hosts of a larger fleet are compared in turn, so that the duration of an inspection does not grow with the fleet. */
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

  /** Reconciles all locations at once, so that a slow engine does not delay the others. */
  async reconcile(stopping: AbortSignal): Promise<void> {
    const locations = [...this.#services.engines.keys()]
    await Promise.all(locations.map((location) => this.location(location, stopping)))
    await this.lost(stopping)
  }

  /** Reconciles one location. Its silent hosts are marked even if its engine fails or hangs. */
  async location(location: string, stopping: AbortSignal): Promise<void> {
    const { database, log } = this.#services
    const inspection = await beginInspection(database, location, hostsPerDetailedInspection)
    let problem = ''
    let unreadMs = 0
    try {
      await withinLimit(stopping, passMs, (signal) => this.#read(location, inspection, signal))
    } catch (error) {
      if (stopping.aborted) return
      log.warn({ err: error, location }, 'location not reconciled, will retry')
      problem = problemOf(error)
      if (error instanceof EngineUnreadable) unreadMs = error.toleranceMs
    }
    await endInspection(database, location, { inspection, problem, unreadMs })
  }

  /** Reconciles the VMs of lost hosts, and marks lost hosts in locations that no worker serves. */
  async lost(signal: AbortSignal): Promise<void> {
    const { database, engines } = this.#services
    const locations = await listUnservedLocations(database, [...engines.keys()])
    if (locations.length > 0) await markLostHosts(database, silenceMs, { locations })
    await reconcileLostVms(this.#services, silenceMs, signal)
    await database.transaction((tx) => markDrainedHosts(tx))
  }

  async #read(location: string, inspection: Inspection, signal: AbortSignal): Promise<void> {
    const asked = { askedAt: inspection.begunAt, inspection: inspection.number }
    // Full reports are needed if the database waits for something in them.
    const mayBeBrief = !inspection.hasQuarantined && !this.#services.config.operations.restored
    const pass = { location, inspection, asked, mayBeBrief, signal }
    const changed = await this.#inspect(pass, () => true)
    if (changed.size === 0) return
    const isDetailed = (host: string) => changed.has(host)
    const askedAt = await pingDatabase(this.#services.database)
    const closePass = {
      ...{ ...pass, inspection: { ...inspection, isDetailed }, asked: { ...asked, askedAt } },
      mayBeBrief: false,
    }
    await this.#inspect(closePass, isDetailed)
  }

  /**
   * Applies the reports of the hosts for which `isIncluded` is true. Returns the hosts with a brief report that shows a
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
      asked = { ...asked, askedAt: await pingDatabase(database) }
    }
  }

  /** Returns the hosts with a brief report that shows a change. */
  async #apply(pass: Pass, reports: HostReport[]): Promise<string[]> {
    const { location, asked } = pass
    const { database } = this.#services
    const present = reports.filter(({ isUnreachable }) => !isUnreachable)
    const unreachable = reports.filter(({ isUnreachable }) => isUnreachable)
    const news = await findNews(database, location, present, asked)
    // A host with an unchanged report is up and so cannot be forgotten.
    const mayBeForgotten = news.length > 0 || unreachable.length > 0
    const forgotten = mayBeForgotten ? await listForgottenHosts(database, location) : new Set<string>()
    const isKnown = ({ name }: { name: string }) => !forgotten.has(name)
    const knownUnreachable = unreachable.filter(isKnown).map(({ name }) => name)
    await markUnreachableHosts(database, location, knownUnreachable)
    const knownNews = news.filter(isKnown)
    const close = present.filter((report) => !report.isSummary && isKnown(report))
    const closeNews = knownNews.filter(({ report }) => !report.isSummary)
    if (close.length > 0) await this.#compare(pass, close, closeNews)
    await reconcileCordons(this.#services, location, present.filter(isKnown), pass.signal)
    return knownNews.filter(({ report }) => report.isSummary).map(({ name }) => name)
  }

  async #compare(pass: Pass, reports: HostReport[], news: News[]): Promise<void> {
    const { location, inspection, asked, signal } = pass
    const { database, config } = this.#services
    const inspectedAt = inspection.begunAt
    const engineName = config.locations.find(({ name }) => name === location)?.engine ?? 'simulated'
    if (news.length > 0) {
      const changed = news.map(({ report }) => report)
      await protectReturningHosts(this.#services, location, changed, signal)
      // If the inspection has exceeded its time limit, another process may have acted in the meantime.
      signal.throwIfAborted()
      await applyNews(database, location, engineName, news, asked)
    }
    if (config.operations.restored) await catchUp(this.#services, location, reports)
    for (const part of chunksOf(reports, hostsPerComparison)) {
      await reconcileVms(this.#services, location, part, signal)
      await this.#orphans.remove(location, part, inspectedAt, signal)
    }
    if (news.length > 0 || inspection.hasFaults) await applyHostFaults(this.#services, location)
    if (inspection.hasQuarantined) await freeReportedGpus(database, location, reports, inspectedAt)
  }
}

/** Returns the text for operators. Errors that the engine did not cause are only in the log. */
const problemOf = (error: unknown): string =>
  error instanceof EngineError
    ? error.message.slice(0, maxProblemLength)
    : 'The inspection failed; see the log.'

/**
 * Returns at most `most` items. It does not use `for await`, which would wait for a generator that hangs when the loop is
 * left.
 */
async function nextOf<T>(source: AsyncIterator<T>, most: number): Promise<T[]> {
  const items: T[] = []
  while (items.length < most) {
    const { value, done } = await source.next()
    if (done) break
    items.push(value)
  }
  return items
}
