import { setTimeout as delay } from 'node:timers/promises'
import { Doorbell } from '../domain/doorbell.ts'
import { uuid } from '../domain/ids.ts'
import { claimOperations, renewLeases } from '../store/operations.ts'
import { Attempt, type Held, LostLease } from './attempt.ts'
import type { Definition, Workshop } from './operation.ts'

const pollMs = 1_000
/** An engine that hangs costs one attempt of this length, not the operation. */
const longestStepMs = 60_000

/**
 * Runs operations: claims what is due, one step at a time, under a lease that is renewed while it lives. Whatever a
 * step does to the database commits only together with its outcome and only under a lease that still stands.
 */
export class Runner {
  readonly #workshop: Workshop
  readonly #definitions: Map<string, Definition>
  readonly #stepMs: number
  readonly #held = new Map<string, Held>()
  readonly #stopping = new AbortController()
  readonly #bell = new Doorbell(() => this.#claim())
  /** More may be due than there were places for. */
  #isStarved = false
  #loops: Promise<void>[] = []
  #running = new Set<Promise<void>>()
  #unsubscribe = () => {}

  constructor(workshop: Workshop, definitions: Definition[], stepMs = longestStepMs) {
    this.#workshop = workshop
    this.#stepMs = stepMs
    this.#definitions = new Map(definitions.map((definition) => [definition.kind, definition]))
  }

  start(): void {
    this.#unsubscribe = this.#workshop.signals.on('operations', () => this.#wake())
    this.#loops = [
      this.#every(pollMs, () => this.#wake()),
      this.#every(this.#settings.renewMs, () => this.#renew()),
    ]
    this.#wake()
  }

  /** Takes no more work, and hands back what does not finish by itself in time. */
  async stop(graceMs = 5_000): Promise<void> {
    this.#stopping.abort()
    this.#unsubscribe()
    await Promise.race([Promise.all(this.#running), delay(graceMs)])
    for (const held of this.#held.values()) held.abort.abort()
    await Promise.race([Promise.all(this.#running), delay(1_000)])
    await Promise.all(this.#loops)
  }

  get #settings() {
    return this.#workshop.config.operations
  }

  async #every(ms: number, action: () => unknown): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await delay(ms, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => {})
      if (!this.#stopping.signal.aborted) await action()
    }
  }

  #wake(): void {
    this.#bell.ring().catch((err) => this.#workshop.log.warn({ err }, 'cannot claim operations'))
  }

  /** Answers whether more may be due. */
  async #claim(): Promise<boolean> {
    if (this.#stopping.signal.aborted) return false
    const { saturated, most } = this.#shares()
    this.#isStarved = saturated.length > 0 || most <= 0
    if (most <= 0) return false
    const leaseToken = uuid()
    const { leaseMs } = this.#settings
    const rows = await claimOperations(this.#workshop.database, leaseToken, leaseMs, saturated, most)
    for (const row of rows) this.#begin({ row, leaseToken, abort: new AbortController() })
    return rows.length === most
  }

  /** No project holds more than three quarters of the places: a long queue of one never keeps another out. */
  #shares(): { saturated: string[]; most: number } {
    const { concurrency } = this.#settings
    const share = Math.max(1, Math.floor(concurrency * 0.75))
    const counts = new Map<string, number>()
    for (const { row } of this.#held.values())
      counts.set(row.project_id, (counts.get(row.project_id) ?? 0) + 1)
    const saturated = [...counts].filter(([, count]) => count >= share).map(([project]) => project)
    const largest = Math.max(0, ...[...counts.values()].filter((count) => count < share))
    return { saturated, most: Math.min(concurrency - this.#held.size, share - largest) }
  }

  #begin(held: Held): void {
    this.#held.set(held.row.id, held)
    const run = this.#run(held)
      .catch((error) => {
        if (!(error instanceof LostLease))
          this.#workshop.log.error({ err: error, operation: held.row.id }, 'operation interrupted')
      })
      .finally(() => {
        if (this.#held.get(held.row.id) === held) this.#held.delete(held.row.id)
        this.#running.delete(run)
        if (this.#isStarved) this.#wake()
      })
    this.#running.add(run)
  }

  async #renew(): Promise<void> {
    const held = [...this.#held.values()].map(({ row, leaseToken }) => ({ id: row.id, leaseToken }))
    if (held.length === 0) return
    const alive = await renewLeases(this.#workshop.database, held, this.#settings.leaseMs).catch(() => null)
    if (!alive) return
    for (const { id } of held) if (!alive.has(id)) this.#held.get(id)?.abort.abort()
  }

  async #run(held: Held): Promise<void> {
    const definition = this.#definitions.get(held.row.kind)
    if (!definition) throw new Error(`there is no operation called ${held.row.kind}`)
    const attempt = new Attempt(this.#workshop, definition, held, this.#stepMs)
    while (!this.#stopping.signal.aborted && (await attempt.step())) {
      // One step after the other, under the same lease.
    }
    if (this.#stopping.signal.aborted) await attempt.handBack()
  }
}
