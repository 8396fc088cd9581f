import { setTimeout as delay } from 'node:timers/promises'
import { uuid } from '../domain/ids.ts'
import { type SlotHolder, SlotShares } from '../domain/slot-shares.ts'
import type { Services } from '../services.ts'
import {
  type ClaimedOperation,
  claimOperations,
  claimOperationsFairly,
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
 * Claims due operations and runs their steps, with leases that it renews. The writes of a step commit only
 * together with its outcome, and only while the lease is held.
 */
export class Runner implements SlotOwner {
  readonly #services: Services
  readonly #definitions: Map<string, Definition>
  readonly #shared: SharedSteps
  readonly #tasks: PeriodicTasks
  readonly #claiming = new CoalescedTask(() => this.#claim())
  readonly #running = new Map<Attempt, Promise<void>>()
  /** The slots of running operations and of operations that are being written. */
  readonly #shares: SlotShares
  /** True if operations may be due for which no slot was free. */
  #isStarved = false

  constructor(services: Services, definitions: Definition[]) {
    this.#services = services
    this.#shares = new SlotShares(services.config.operations.concurrency)
    this.#definitions = new Map(definitions.map((definition) => [definition.kind, definition]))
    this.#shared = new SharedSteps(services.database)
    this.#tasks = new PeriodicTasks((err) => services.log.warn({ err }, 'leases not renewed'))
  }

  start(): void {
    const unsubscribe = this.#services.signals.on('operations', () => this.#wake())
    this.#tasks.stopping.addEventListener('abort', unsubscribe)
    this.#tasks.runOn(
      (call) => this.#services.due.on({ kind: 'operations' }, call),
      () => this.#wake(),
    )
    this.#tasks.every(this.#services.config.operations.renewMs, () => this.#renew())
    // Operations may already be due, and the next read of due work may be two seconds away.
    this.#wake()
  }

  /**
   * Stops claiming. Releases the leases of operations that do not finish in time, so that other workers can
   * claim them.
   */
  async stop(graceMs = 5_000): Promise<void> {
    const stopped = this.#tasks.stop()
    const timer = setTimeout(() => {
      for (const attempt of this.#running.keys()) attempt.engineWork.abort()
    }, graceMs)
    // A claim may be in progress. Wait for it, so that the leases of its operations are released as well.
    const claimed = this.#claiming.run().catch(() => {})
    const idle = claimed.then(() => Promise.all(this.#running.values()))
    await Promise.race([idle, delay(graceMs + 1_000)])
    clearTimeout(timer)
    await stopped
  }

  /**
   * Reserves a slot by the rules of a claim: within the holder's share, and only if no operation waits for a
   * slot.
   */
  reserve(holder: SlotHolder, location: string): Slot | undefined {
    const { config, engines } = this.#services
    if (this.#tasks.stopping.aborted || this.#isStarved) return undefined
    if (location !== '' && !engines.has(location)) return undefined
    if (!this.#shares.canTake(holder)) return undefined
    this.#shares.take(holder)
    const token = uuid()
    let written: ClaimedOperation | undefined
    return {
      lease: { token, ms: config.operations.leaseMs },
      fill: (operation: ClaimedOperation) => {
        written = operation
      },
      close: (isCommitted: boolean) => {
        this.#shares.release(holder)
        if (isCommitted && written) this.#begin(written, token, holder)
      },
    }
  }

  #wake(): void {
    this.#claiming
      .run()
      .catch((err) => this.#services.log.warn({ err }, 'operations not claimed, will retry'))
  }

  /** Returns whether more operations may be due. */
  async #claim(): Promise<boolean> {
    if (this.#tasks.stopping.aborted) return false
    const { free, maxForAny, maxForAll } = this.#shares
    const isFair = this.#isStarved || maxForAny <= 0
    // While the claim runs, new operations of this process must not take slots before waiting operations.
    this.#isStarved = isFair
    if (free <= 0) return false
    const leaseToken = uuid()
    const { database, engines, config } = this.#services
    const limit = isFair ? maxForAll : maxForAny
    const claim = {
      leaseToken,
      leaseMs: config.operations.leaseMs,
      locations: ['', ...engines.keys()],
      limit,
    }
    const rows = isFair
      ? await claimOperationsFairly(database, claim, this.#shares)
      : await claimOperations(database, claim)
    for (const row of rows)
      this.#begin(row, leaseToken, { projectId: row.project_id, organizationId: row.organization_id })
    // Operations of holders that have used up their share may still be waiting.
    this.#isStarved = rows.length === limit || this.#shares.maxForAny <= 0
    return rows.length === limit
  }

  #begin(row: ClaimedOperation, token: string, holder: SlotHolder): void {
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
        this.#shares.release(holder)
        if (this.#isStarved) this.#wake()
      })
    this.#running.set(attempt, run)
    this.#shares.take(holder)
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
