import { EngineError, type HostReport } from '../engines/engine.ts'
import { withinLimit } from '../runner/limit.ts'
import type { Services } from '../services.ts'
import { findOrphans } from '../store/fleet/orphans.ts'

/** An object that no row ever knew may belong to a creation that we have not read yet: it gets an hour. */
const unknownMs = 3_600_000
const removalMs = 60_000

/** Engine objects without a row: those of a deleted id go at once, those that no row ever knew after an hour. */
export class Orphans {
  readonly #services: Services
  readonly #seenSince = new Map<string, number>()

  constructor(services: Services) {
    this.#services = services
  }

  async remove(
    location: string,
    reports: HostReport[],
    inspectedAt: Date,
    signal: AbortSignal,
  ): Promise<void> {
    const { database, engines, log } = this.#services
    const engine = engines.get(location)!
    const vms = new Map(
      reports.flatMap((report) => report.vms.map((vm) => [vm.id, { ...vm, host: report.name }])),
    )
    const disks = new Map(
      reports.flatMap((report) => report.disks.map((disk) => [disk.id, { ...disk, host: report.name }])),
    )
    const now = inspectedAt.getTime()
    const reported = [...vms.keys(), ...disks.keys()]
    const orphans = reported.length > 0 ? await findOrphans(database, reported) : []
    const isOrphan = new Set(orphans.map(({ id }) => id))
    for (const id of reported) if (!isOrphan.has(id)) this.#seenSince.delete(id)
    for (const { id, newest_generation } of orphans) {
      signal.throwIfAborted()
      const vm = vms.get(id)
      const object = vm ?? disks.get(id)!
      if (newest_generation === null && this.#stays({ id, location, host: object.host }, now)) continue
      const generation = Math.max(newest_generation ?? 0, object.generation)
      const ref = { id, host: object.host }
      log.warn({ id, location }, 'removing an orphan: no record knows it')
      try {
        await withinLimit(signal, removalMs, (limited) =>
          vm
            ? engine.removeVm(ref, { generation, signal: limited })
            : engine.removeDisk(ref, { generation, signal: limited }),
        )
        this.#seenSince.delete(id)
      } catch (error) {
        if (!(error instanceof EngineError)) throw error
        log.warn({ err: error, id, location }, 'orphan not removed')
      }
    }
  }

  /** Says so when it is first seen: somebody may want to look before its hour is over. */
  #stays(unknown: { id: string; location: string; host: string }, now: number): boolean {
    const { config, log } = this.#services
    const { restored } = config.operations
    const since = this.#seenSince.get(unknown.id)
    if (since !== undefined) return restored || now - since < unknownMs
    this.#seenSince.set(unknown.id, now)
    log.warn(unknown, `no record knows it: it stays${restored ? '' : ' for an hour'}`)
    return true
  }
}
