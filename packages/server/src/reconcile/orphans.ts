import { type Engine, EngineError, type HostReport } from '../engines/engine.ts'
import { withinLimit } from '../runner/limit.ts'
import type { Services } from '../services.ts'
import { findOrphans } from '../store/fleet/orphans.ts'

/** An object that never had a row is kept for an hour, so that an operator can examine it before it is removed. */
const keepUnknownMs = 3_600_000
const removalMs = 60_000

type Kind = 'vm' | 'disk' | 'capture'

const removals = {
  vm: (engine: Engine) => engine.removeVm.bind(engine),
  disk: (engine: Engine) => engine.removeDisk.bind(engine),
  capture: (engine: Engine) => engine.removeCapture.bind(engine),
}

/**
 * Removes engine objects without a row: immediately if their row was deleted, after an hour if they never had
 * a row.
 */
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
    const objects = new Map<string, { generation: number; host: string; kind: Kind }>(
      reports.flatMap(({ name: host, vms, disks, captures = [] }) => [
        ...disks.map(({ id, generation }) => [id, { generation, host, kind: 'disk' }] as const),
        ...captures.map(({ id, generation }) => [id, { generation, host, kind: 'capture' }] as const),
        ...vms.map(({ id, generation }) => [id, { generation, host, kind: 'vm' }] as const),
      ]),
    )
    const orphans = objects.size > 0 ? await findOrphans(database, [...objects.keys()]) : []
    const orphanIds = new Set(orphans.map(({ id }) => id))
    for (const id of objects.keys()) if (!orphanIds.has(id)) this.#seenSince.delete(id)
    for (const { id, newest_generation } of orphans) {
      signal.throwIfAborted()
      const { host, kind, ...object } = objects.get(id)!
      if (newest_generation === null && this.#isKept({ id, location, host }, inspectedAt.getTime())) continue
      const generation = Math.max(newest_generation ?? 0, object.generation)
      const ref = { id, host }
      log.warn({ id, location }, 'removing an orphan: the database has no row with this id')
      try {
        await withinLimit(signal, removalMs, (limited) =>
          removals[kind](engine)(ref, { generation, signal: limited }),
        )
        this.#seenSince.delete(id)
      } catch (error) {
        if (!(error instanceof EngineError)) throw error
        log.warn({ err: error, id, location }, 'orphan not removed')
      }
    }
  }

  /**
   * Returns whether an object that never had a row is kept. Logs it when it is first seen, so that an
   * operator can examine it.
   */
  #isKept(unknown: { id: string; location: string; host: string }, now: number): boolean {
    const { config, log } = this.#services
    const { restored } = config.operations
    const since = this.#seenSince.get(unknown.id)
    if (since !== undefined) return restored || now - since < keepUnknownMs
    this.#seenSince.set(unknown.id, now)
    log.warn(
      unknown,
      `unknown object: the database has no row with this id; the object ${restored ? 'is kept' : 'will be removed in an hour'}`,
    )
    return true
  }
}
