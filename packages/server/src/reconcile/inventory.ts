import type { HostReport } from '../engines/engine.ts'
import type { Services } from '../services.ts'
import { markDrainedHosts } from '../store/fleet/fleet.ts'
import { pingDatabase } from '../store/meta.ts'
import { protectReturningHosts } from './firewalls.ts'
import { freeReportedGpus } from './gpus.ts'
import { applyHostReports, markLostHosts } from './host-reports.ts'
import { Orphans } from './orphans.ts'
import { reconcileLostVms, reconcileVms } from './vm-states.ts'

/** How long a host may be silent. */
const silenceMs = 30_000
const hostsPerBatch = 500

/** Reads what each engine has, batch by batch, and hands every batch to those whom it concerns. */
export class Inventory {
  readonly #services: Services
  readonly #orphans: Orphans

  constructor(services: Services) {
    this.#services = services
    this.#orphans = new Orphans(services)
  }

  /** The inventory of each location, and each removal of an orphan, gets a time limit of its own. */
  async reconcile(limit: () => AbortSignal): Promise<void> {
    const { database, engines, log } = this.#services
    const begunAt = await pingDatabase(database)
    for (const location of engines.keys()) {
      try {
        await this.#location(location, limit)
      } catch (error) {
        // One location's engine being away is no reason to neglect the others.
        log.warn({ err: error, location }, 'location not reconciled')
      }
    }
    await markLostHosts(database, silenceMs, begunAt)
    await reconcileLostVms(this.#services)
    await database.transaction((tx) => markDrainedHosts(tx))
  }

  async #location(location: string, limit: () => AbortSignal): Promise<void> {
    const { database, engines } = this.#services
    const inspectedAt = await pingDatabase(database)
    let batch: HostReport[] = []
    for await (const report of engines.get(location)!.inventory(limit())) {
      batch.push(report)
      if (batch.length < hostsPerBatch) continue
      await this.#batch(location, batch, inspectedAt, limit)
      batch = []
    }
    await this.#batch(location, batch, inspectedAt, limit)
  }

  async #batch(
    location: string,
    reports: HostReport[],
    inspectedAt: Date,
    limit: () => AbortSignal,
  ): Promise<void> {
    const { database, config } = this.#services
    const engineName = config.locations.find(({ name }) => name === location)?.engine ?? 'simulated'
    await protectReturningHosts(this.#services, location, reports, limit())
    await applyHostReports(database, location, engineName, reports)
    await reconcileVms(this.#services, location, reports)
    await freeReportedGpus(database, location, reports, inspectedAt)
    await this.#orphans.remove(location, reports, inspectedAt, limit)
  }
}
