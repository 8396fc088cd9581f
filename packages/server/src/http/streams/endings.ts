import { CoalescedTask } from '../../runner/coalesced.ts'
import { findEndedOperations, type OperationRecord } from '../../store/compute/operation-view.ts'
import type { Database } from '../../store/database.ts'
import type { Signals } from '../../store/signals.ts'

/** Hints can be lost: a look at all that is waited for, without one. */
const lookMs = 2_000

type Waiter = (ended: OperationRecord) => void

/** Those of this process who wait for the end of an operation: one query for all, and only about what has ended. */
export class Endings {
  readonly #database: Database
  readonly #waiting = new Map<string, Set<Waiter>>()
  readonly #toLookAt = new Set<string>()
  readonly #looking = new CoalescedTask(() => this.#look())
  readonly #off: () => void
  readonly #timer: NodeJS.Timeout

  constructor(database: Database, signals: Signals) {
    this.#database = database
    this.#off = signals.on('ended', (ids) => this.#hear(ids ?? [...this.#waiting.keys()]))
    this.#timer = setInterval(() => this.#hear([...this.#waiting.keys()]), lookMs)
    this.#timer.unref()
  }

  /** The operation as it ended; undefined after `ms` or when the caller hangs up. */
  of(operationId: string, ms: number, caller: AbortSignal): Promise<OperationRecord | undefined> {
    return new Promise((resolve) => {
      const waiters = this.#waiting.get(operationId) ?? new Set()
      this.#waiting.set(operationId, waiters)
      const finish = (ended?: OperationRecord) => {
        clearTimeout(timer)
        caller.removeEventListener('abort', hangUp)
        waiters.delete(finish)
        if (waiters.size === 0 && this.#waiting.get(operationId) === waiters)
          this.#waiting.delete(operationId)
        resolve(ended)
      }
      const hangUp = () => finish()
      const timer = setTimeout(finish, ms)
      waiters.add(finish)
      caller.addEventListener('abort', hangUp)
      if (caller.aborted) finish()
      // It may have ended between the caller's look and this one.
      else this.#hear([operationId])
    })
  }

  close(): void {
    this.#off()
    clearInterval(this.#timer)
  }

  #hear(ids: string[]): void {
    for (const id of ids) if (this.#waiting.has(id)) this.#toLookAt.add(id)
    // Without the database nothing is learned; the next look is not far.
    if (this.#toLookAt.size > 0) this.#looking.run().catch(() => {})
  }

  async #look(): Promise<undefined> {
    const ids = [...this.#toLookAt]
    this.#toLookAt.clear()
    for (const row of await findEndedOperations(this.#database, ids))
      for (const tell of this.#waiting.get(row.id) ?? []) tell(row)
  }
}
