import type { Database } from '../../postgres/database.ts'
import type { Signals } from '../../postgres/signals.ts'
import { CoalescedTask } from '../../runner/coalesced.ts'
import { findEndedOperations } from '../../store/compute/operation-view.ts'

/** Hints can be lost: a look at all that is waited for, without one. */
const lookMs = 2_000

/** Somebody who waits for the end of an operation, and has to `close` it. */
export interface Ending {
  /** The operation's record as it ended; undefined after `ms` or when the caller hangs up. */
  within(ms: number, caller: AbortSignal): Promise<string | undefined>
  close(): void
}

type Tell = (record: string) => void

/**
 * Those of this process who wait for the end of an operation. Of what this process ended they are told from memory; of
 * the rest by one query for all, and only about what has ended.
 */
export class Endings {
  readonly #database: Database
  readonly #waiting = new Map<string, Set<Tell>>()
  readonly #toLookAt = new Set<string>()
  readonly #looking = new CoalescedTask(() => this.#look())
  readonly #off: () => void
  readonly #timer: NodeJS.Timeout

  constructor(database: Database, signals: Signals) {
    this.#database = database
    this.#off = signals.on('ended', (ids, record) => {
      if (ids?.[0] !== undefined && record !== undefined) this.#tell(ids[0], record)
      else this.#hear(ids ?? [...this.#waiting.keys()])
    })
    this.#timer = setInterval(() => this.#hear([...this.#waiting.keys()]), lookMs)
    this.#timer.unref()
  }

  /** Whoever listens before it looks at the operation misses no end. */
  listen(operationId: string): Ending {
    const waiters = this.#waiting.get(operationId) ?? new Set()
    this.#waiting.set(operationId, waiters)
    let tell: Tell = () => {}
    const told = new Promise<string>((resolve) => {
      tell = resolve
    })
    waiters.add(tell)
    return {
      within: (ms, caller) => within(told, ms, caller),
      close: () => {
        waiters.delete(tell)
        if (waiters.size === 0 && this.#waiting.get(operationId) === waiters)
          this.#waiting.delete(operationId)
      },
    }
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
    for (const { id, record } of await findEndedOperations(this.#database, ids)) this.#tell(id, record)
  }

  #tell(id: string, record: string): void {
    for (const tell of this.#waiting.get(id) ?? []) tell(record)
  }
}

function within(told: Promise<string>, ms: number, caller: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const finish = (record?: string) => {
      clearTimeout(timer)
      caller.removeEventListener('abort', giveUp)
      resolve(record)
    }
    const giveUp = () => finish()
    const timer = setTimeout(giveUp, ms)
    caller.addEventListener('abort', giveUp)
    if (caller.aborted) giveUp()
    void told.then(finish)
  })
}
