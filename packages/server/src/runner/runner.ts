import { setTimeout as delay } from 'node:timers/promises'
import { fairShare } from '../domain/fair-share.ts'
import { uuid } from '../domain/ids.ts'
import type { Services } from '../services.ts'
import {
  type ClaimedOperation,
  claimOperations,
  LostLease,
  renewLeases,
} from '../store/compute/operation-leases.ts'
import { Attempt } from './attempt.ts'
import { CoalescedTask } from './coalesced.ts'
import type { Definition } from './operation.ts'
import { PeriodicTasks } from './periodic.ts'
import { SharedSteps } from './shared-steps.ts'
import type { Slot, SlotOwner } from './slots.ts'

/**
 * Claims due operations and runs their steps, under a lease that it renews. The writes of a step commit only together with
 * its outcome, and only while the lease is held.
 */
export class Runner implements SlotOwner {
  readonly #services: Services
  readonly #definitions: Map<string, Definition>
  readonly #shared: SharedSteps
  readonly #tasks: PeriodicTasks
  readonly #claiming = new CoalescedTask(() => this.#claim())
  readonly #running = new Map<Attempt, Promise<void>>()
  /** The projects of operations that are being written and have a slot of this worker. */
  readonly #reserved: string[] = []
  /** More operations may be due than there were slots for. */
  #isStarved = false

  constructor(services: Services, definitions: Definition[]) {
    this.#services = services
    this.#definitions = new Map(definitions.map((definition) => [definition.kind, definition]))
    this.#shared = new SharedSteps(services.database)
    this.#tasks = new PeriodicTasks((err) => services.log.warn({ err }, 'leases not renewed'))
  }

  start(): void {
    const unsubscribe = this.#services.signals.on('operations', () => this.#wake())
    this.#tasks.stopping.addEventListener('abort', unsubscribe)
    this.#tasks.upon(
      (call) => this.#services.due.on({ kind: 'operations' }, call),
      () => this.#wake(),
    )
    this.#tasks.every(this.#services.config.operations.renewMs, () => this.#renew())
  }

  /** Claims nothing more, and hands back operations that do not finish in time. */
  async stop(graceMs = 5_000): Promise<void> {
    const stopped = this.#tasks.stop()
    const timer = setTimeout(() => {
      for (const attempt of this.#running.keys()) attempt.engineWork.abort()
    }, graceMs)
    // A claim may be in progress: its operations are handed back, too.
    const claimed = this.#claiming.run().catch(() => {})
    const idle = claimed.then(() => Promise.all(this.#running.values()))
    await Promise.race([idle, delay(graceMs + 1_000)])
    clearTimeout(timer)
    await stopped
  }

  /** Reserves a slot under the rules of a claim: within the project's share, and not before operations that wait. */
  reserve(projectId: string, location: string): Slot | undefined {
    const { config, engines } = this.#services
    if (this.#tasks.stopping.aborted || this.#isStarved) return undefined
    if (location !== '' && !engines.has(location)) return undefined
    const { saturated, most } = this.#share
    if (most <= 0 || saturated.includes(projectId)) return undefined
    this.#reserved.push(projectId)
    const token = uuid()
    let written: ClaimedOperation | undefined
    return {
      lease: { token, ms: config.operations.leaseMs },
      fill: (operation: ClaimedOperation) => {
        written = operation
      },
      close: (isCommitted: boolean) => {
        this.#reserved.splice(this.#reserved.indexOf(projectId), 1)
        if (isCommitted && written) this.#begin(written, token)
      },
    }
  }

  /** The number of free slots, and the projects that have used up their share. */
  get #share() {
    const held = [...this.#running.keys()].map((attempt) => attempt.row.project_id)
    return fairShare([...held, ...this.#reserved], this.#services.config.operations.concurrency)
  }

  #wake(): void {
    this.#claiming
      .run()
      .catch((err) => this.#services.log.warn({ err }, 'operations not claimed, will retry'))
  }

  /** Returns whether more operations may be due. */
  async #claim(): Promise<boolean> {
    if (this.#tasks.stopping.aborted) return false
    const { saturated, most } = this.#share
    this.#isStarved = saturated.length > 0 || most <= 0
    if (most <= 0) return false
    const leaseToken = uuid()
    const { database, engines, config } = this.#services
    const { leaseMs } = config.operations
    const locations = ['', ...engines.keys()]
    const rows = await claimOperations(database, saturated, { leaseToken, leaseMs, locations, most })
    for (const row of rows) this.#begin(row, leaseToken)
    return rows.length === most
  }

  #begin(row: ClaimedOperation, token: string): void {
    const definition = this.#definitions.get(row.kind)
    if (!definition) {
      this.#services.log.error({ operation: row.id }, `unknown kind of operation: ${row.kind}`)
      return
    }
    const attempt = new Attempt(this.#services, this.#shared, definition, row, token)
    const run = attempt
      .run(this.#tasks.stopping)
      .catch((err) => {
        if (err instanceof LostLease) return
        this.#services.log.error({ err, operation: attempt.row.id }, 'operation interrupted')
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
    const { database, config } = this.#services
    const leases = attempts.map(({ lease }) => lease)
    const lost = await renewLeases(database, leases, config.operations.leaseMs)
    for (const attempt of attempts) if (lost.includes(attempt.lease)) attempt.engineWork.abort()
  }
}
