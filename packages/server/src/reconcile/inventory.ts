import { inParts } from '../domain/lists.ts'
import type { HostReport } from '../engines/engine.ts'
import { pingDatabase } from '../postgres/ping.ts'
import { withinLimit } from '../runner/limit.ts'
import type { Services } from '../services.ts'
import { markDrainedHosts } from '../store/fleet/fleet.ts'
import { listForgottenHosts } from '../store/fleet/forgotten-hosts.ts'
import type { Asked } from '../store/fleet/host-reports.ts'
import { beginInspection, type Inspection } from '../store/fleet/inspections.ts'
import { listUnservedLocations, silenceMs } from '../store/fleet/locations.ts'
import { reconcileCordons } from './cordons.ts'
import { protectReturningHosts } from './firewalls.ts'
import { freeReportedGpus } from './gpus.ts'
import {
  applyNews,
  endInspection,
  findNews,
  markAwayHosts,
  markLostHosts,
  type News,
} from './host-reports.ts'
import { Orphans } from './orphans.ts'
import { catchUp } from './restored.ts'
import { reconcileLostVms, reconcileVms } from './vm-states.ts'

/** How long an engine may take for one batch. */
const stallMs = 20_000
/** However busy a location is, its lost hosts are marked so often. */
const passMs = 300_000
const hostsPerBatch = 500
/** So few that nobody waits long while their VMs are compared. */
const hostsPerComparison = 50
/** A larger fleet is looked at closely in turn, so that a inspection takes about as long however many VMs there are. */
const hostsPerDetailedInspection = 500

/** Reads what each engine has, batch by batch, and hands every batch to those whom it concerns. */
export class Inventory {
  readonly #services: Services
  readonly #orphans: Orphans

  constructor(services: Services) {
    this.#services = services
    this.#orphans = new Orphans(services)
  }

  /** All locations at once: one whose engine is slow or away is no reason to neglect the others. */
  async reconcile(stopping: AbortSignal): Promise<void> {
    const locations = [...this.#services.engines.keys()]
    await Promise.all(locations.map((location) => this.location(location, stopping)))
    await this.lost(stopping)
  }

  /**
   * What one engine reports. Its silent hosts are marked whatever becomes of it: an engine that hangs, deaf to its
   * signal, is given up.
   */
  async location(location: string, stopping: AbortSignal): Promise<void> {
    const { database, log } = this.#services
    const inspection = await beginInspection(database, location, hostsPerDetailedInspection)
    let isComplete = false
    try {
      await withinLimit(stopping, passMs, (signal) => this.#read(location, inspection, signal))
      isComplete = true
    } catch (error) {
      if (stopping.aborted) return
      log.warn({ err: error, location }, 'location not reconciled')
    }
    await endInspection(database, location, { inspection, isComplete })
  }

  /** What follows from hosts that are lost; locations that no worker serves lose theirs here. */
  async lost(signal: AbortSignal): Promise<void> {
    const { database, engines } = this.#services
    const locations = await listUnservedLocations(database, [...engines.keys()])
    if (locations.length > 0) await markLostHosts(database, silenceMs, { locations })
    await reconcileLostVms(this.#services, silenceMs, signal)
    await database.transaction((tx) => markDrainedHosts(tx))
  }

  async #read(location: string, inspection: Inspection, signal: AbortSignal): Promise<void> {
    const changed = await this.#inspect(location, inspection, { askedAt: inspection.begunAt, signal })
    if (changed.size === 0) return
    const isClose = (host: string) => changed.has(host)
    const askedAt = await pingDatabase(this.#services.database)
    await this.#inspect(location, { ...inspection, isClose }, { askedAt, signal, isMeant: isClose })
  }

  /** Returns hosts that were told briefly and have changed. `isMeant` says of which hosts it takes notice at all. */
  async #inspect(
    location: string,
    inspection: Inspection,
    {
      askedAt,
      signal,
      isMeant = () => true,
    }: { askedAt: Date; signal: AbortSignal; isMeant?: (host: string) => boolean },
  ): Promise<Set<string>> {
    const { database, engines, stepMs } = this.#services
    const reports = engines.get(location)!.inventory(signal, inspection.isClose)[Symbol.asyncIterator]()
    const changed = new Set<string>()
    const asked = { askedAt, inspection: inspection.number }
    for (;;) {
      const batch = await withinLimit(signal, stepMs ?? stallMs, () => nextOf(reports, hostsPerBatch))
      const meant = batch.filter(({ name }) => isMeant(name))
      for (const host of await this.#takeIn(location, meant, { asked, inspection }, signal)) changed.add(host)
      if (batch.length < hostsPerBatch) return changed
      asked.askedAt = await pingDatabase(database)
    }
  }

  /** Returns hosts that were told briefly and have changed. */
  async #takeIn(
    location: string,
    reports: HostReport[],
    { asked, inspection }: { asked: Asked; inspection: Inspection },
    signal: AbortSignal,
  ): Promise<string[]> {
    const { database } = this.#services
    const told = reports.filter(({ isAway }) => !isAway)
    const away = reports.filter(({ isAway }) => isAway).map(({ name }) => name)
    const news = await findNews(database, location, told, asked)
    // A host that repeats its last report is up, so that only another one can be forgotten.
    const mayBeForgotten = news.length > 0 || away.length > 0
    const forgotten = mayBeForgotten ? await listForgottenHosts(database, location) : new Set<string>()
    await markAwayHosts(
      database,
      location,
      away.filter((name) => !forgotten.has(name)),
    )
    const knownNews = news.filter(({ name }) => !forgotten.has(name))
    const close = told.filter(({ name, isBrief }) => !isBrief && !forgotten.has(name))
    const closeNews = knownNews.filter(({ report }) => !report.isBrief)
    if (close.length > 0) await this.#compare(location, close, closeNews, { asked, inspection }, signal)
    return knownNews.filter(({ report }) => report.isBrief).map(({ name }) => name)
  }

  /** Reports that come when their time is up are worth nothing: others may have acted since. */
  async #compare(
    location: string,
    reports: HostReport[],
    news: News[],
    { asked, inspection }: { asked: Asked; inspection: Inspection },
    signal: AbortSignal,
  ): Promise<void> {
    const { database, config } = this.#services
    const inspectedAt = inspection.begunAt
    const engineName = config.locations.find(({ name }) => name === location)?.engine ?? 'simulated'
    if (news.length > 0) {
      await protectReturningHosts(
        this.#services,
        location,
        news.map(({ report }) => report),
        signal,
      )
      signal.throwIfAborted()
      await applyNews(database, location, engineName, news, asked)
    }
    if (config.operations.restored) await catchUp(this.#services, location, reports)
    for (const some of inParts(reports, hostsPerComparison)) {
      await reconcileVms(this.#services, location, some, signal)
      await this.#orphans.remove(location, some, inspectedAt, signal)
    }
    if (inspection.hasQuarantined) await freeReportedGpus(database, location, reports, inspectedAt)
    await reconcileCordons(this.#services, location, reports, signal)
  }
}

/** At most so many, fewer at the end. By hand: `for await` would wait for a generator that hangs even to leave it. */
async function nextOf<T>(items: AsyncIterator<T>, most: number): Promise<T[]> {
  const some: T[] = []
  while (some.length < most) {
    const { value, done } = await items.next()
    if (done) break
    some.push(value)
  }
  return some
}
