import { setTimeout as delay } from 'node:timers/promises'
import { Doorbell } from '../domain/doorbell.ts'
import { fairShare } from '../domain/fairness.ts'
import { uuid } from '../domain/ids.ts'
import { claimOperations, LostLease, renewLeases } from '../store/operations.ts'
import { Attempt } from './attempt.ts'
import { Loops } from './loops.ts'
import type { Definition, Workshop } from './operation.ts'

const pollMs = 1_000

/**
 * Runs operations: claims what is due, one step at a time, under a lease that is renewed while it lives. Whatever a
 * step does to the database commits only together with its outcome and only under a lease that still stands.
 */
export class Runner {
  readonly #workshop: Workshop
  readonly #definitions: Map<string, Definition>
  readonly #loops: Loops
  readonly #bell = new Doorbell(() => this.#claim())
  readonly #running = new Map<Attempt, Promise<void>>()
  /** More may be due than there were places for. */
  #isStarved = false

  constructor(workshop: Workshop, definitions: Definition[]) {
    this.#workshop = workshop
    this.#definitions = new Map(definitions.map((definition) => [definition.kind, definition]))
    this.#loops = new Loops((err) => workshop.log.warn({ err }, 'leases not renewed'))
  }

  start(): void {
    const unsubscribe = this.#workshop.signals.on('operations', () => this.#wake())
    this.#loops.stopping.addEventListener('abort', unsubscribe)
    this.#loops.every(pollMs, () => this.#wake())
    this.#loops.every(this.#workshop.config.operations.renewMs, () => this.#renew())
  }

  /** Takes no more work, and hands back what does not finish by itself in time. */
  async stop(graceMs = 5_000): Promise<void> {
    const stopped = this.#loops.stop()
    const timer = setTimeout(() => {
      for (const attempt of this.#running.keys()) attempt.engineWork.abort()
    }, graceMs)
    // A claim may be on its way: what it brings is handed back, too.
    const claimed = this.#bell.ring().catch(() => {})
    const idle = claimed.then(() => Promise.all(this.#running.values()))
    await Promise.race([idle, delay(graceMs + 1_000)])
    clearTimeout(timer)
    await stopped
  }

  #wake(): void {
    this.#bell.ring().catch((err) => this.#workshop.log.warn({ err }, 'cannot claim operations'))
  }

  /** Answers whether more may be due. */
  async #claim(): Promise<boolean> {
    if (this.#loops.stopping.aborted) return false
    const { concurrency, leaseMs } = this.#workshop.config.operations
    const projects = [...this.#running.keys()].map((attempt) => attempt.row.project_id)
    const { saturated, most } = fairShare(projects, concurrency)
    this.#isStarved = saturated.length > 0 || most <= 0
    if (most <= 0) return false
    const token = uuid()
    const rows = await claimOperations(this.#workshop.database, token, leaseMs, saturated, most)
    for (const row of rows) {
      const definition = this.#definitions.get(row.kind)
      if (definition) this.#begin(new Attempt(this.#workshop, definition, row, token))
      else this.#workshop.log.error({ operation: row.id }, `there is no operation called ${row.kind}`)
    }
    return rows.length === most
  }

  #begin(attempt: Attempt): void {
    const run = attempt
      .run(this.#loops.stopping)
      .catch((err) => {
        if (err instanceof LostLease) return
        this.#workshop.log.error({ err, operation: attempt.row.id }, 'operation interrupted')
      })
      .finally(() => {
        this.#running.delete(attempt)
        if (this.#isStarved) this.#wake()
      })
    this.#running.set(attempt, run)
  }

  async #renew(): Promise<void> {
    const attempts = [...this.#running.keys()]
    if (attempts.length === 0) return
    const { database, config } = this.#workshop
    const leases = attempts.map(({ lease }) => lease)
    const lost = await renewLeases(database, leases, config.operations.leaseMs)
    for (const attempt of attempts) if (lost.includes(attempt.lease)) attempt.engineWork.abort()
  }
}
