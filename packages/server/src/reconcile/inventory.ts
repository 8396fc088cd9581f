import { inParts } from '../domain/lists.ts'
import type { HostReport } from '../engines/engine.ts'
import { withinLimit } from '../runner/limit.ts'
import type { Services } from '../services.ts'
import { markDrainedHosts } from '../store/fleet/fleet.ts'
import { listForgottenHosts } from '../store/fleet/forgotten-hosts.ts'
import type { Asked } from '../store/fleet/host-reports.ts'
import { listUnservedLocations, noteEngineAnswer } from '../store/fleet/locations.ts'
import { beginLook, type Look } from '../store/fleet/looks.ts'
import { pingDatabase } from '../store/meta.ts'
import { reconcileCordons } from './cordons.ts'
import { protectReturningHosts } from './firewalls.ts'
import { freeReportedGpus } from './gpus.ts'
import {
  applyHostReports,
  markAwayHosts,
  markLostHosts,
  noteBriefReports,
  silenceMs,
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
/** A larger fleet is looked at closely in turn, so that a look takes about as long however many VMs there are. */
const hostsPerCloseLook = 500

/** Whoever reads the inventory of a location has a turn of this name. */
export const reportsTurn = (location: string): string => `reports ${location}`

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
    const look = await beginLook(database, location, hostsPerCloseLook)
    try {
      await withinLimit(stopping, passMs, (signal) => this.#read(location, look, signal))
      await noteEngineAnswer(database, location)
    } catch (error) {
      if (stopping.aborted) return
      log.warn({ err: error, location }, 'location not reconciled')
    }
    await markLostHosts(database, silenceMs, { locations: [location], look })
  }

  /** What follows from hosts that are lost; locations that no worker serves lose theirs here. */
  async lost(signal: AbortSignal): Promise<void> {
    const { database, engines } = this.#services
    const locations = await listUnservedLocations(database, [...engines.keys()], reportsTurn(''), silenceMs)
    if (locations.length > 0) await markLostHosts(database, silenceMs, { locations })
    await reconcileLostVms(this.#services, silenceMs, signal)
    await database.transaction((tx) => markDrainedHosts(tx))
  }

  async #read(location: string, look: Look, signal: AbortSignal): Promise<void> {
    const changed = await this.#look(location, look, signal)
    const isClose = (host: string) => changed.has(host)
    if (changed.size > 0) await this.#look(location, { ...look, isClose }, signal, isClose)
  }

  /** Returns hosts that were told briefly and have changed. `isMeant` says of which hosts it takes notice at all. */
  async #look(
    location: string,
    look: Look,
    signal: AbortSignal,
    isMeant = (_host: string) => true,
  ): Promise<Set<string>> {
    const { database, engines, stepMs } = this.#services
    const reports = engines.get(location)!.inventory(signal, look.isClose)[Symbol.asyncIterator]()
    const changed = new Set<string>()
    for (let isMore = true; isMore; ) {
      const asked = { askedAt: await pingDatabase(database), look: look.number }
      const batch = await withinLimit(signal, stepMs ?? stallMs, () => nextOf(reports, hostsPerBatch))
      isMore = batch.length === hostsPerBatch
      const forgotten = await listForgottenHosts(database, location)
      const known = batch.filter(({ name }) => isMeant(name) && !forgotten.has(name))
      const away = known.filter(({ isAway }) => isAway).map(({ name }) => name)
      await markAwayHosts(database, location, away)
      const brief = known.filter(({ isAway, isBrief }) => !isAway && isBrief)
      for (const name of await noteBriefReports(database, location, brief, asked)) changed.add(name)
      const close = known.filter(({ isAway, isBrief }) => !isAway && !isBrief)
      if (close.length > 0) await this.#compare(location, close, { asked, inspectedAt: look.begunAt }, signal)
    }
    return changed
  }

  /** Reports that come when their time is up are worth nothing: others may have acted since. */
  async #compare(
    location: string,
    reports: HostReport[],
    { asked, inspectedAt }: { asked: Asked; inspectedAt: Date },
    signal: AbortSignal,
  ): Promise<void> {
    const { database, config } = this.#services
    const engineName = config.locations.find(({ name }) => name === location)?.engine ?? 'simulated'
    await protectReturningHosts(this.#services, location, reports, signal)
    signal.throwIfAborted()
    await applyHostReports(database, location, engineName, reports, asked)
    if (config.operations.restored) await catchUp(this.#services, location, reports)
    for (const some of inParts(reports, hostsPerComparison)) {
      await reconcileVms(this.#services, location, some, signal)
      await this.#orphans.remove(location, some, inspectedAt, signal)
    }
    await freeReportedGpus(database, location, reports, inspectedAt)
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
