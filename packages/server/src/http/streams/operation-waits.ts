import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../postgres/database.ts'
import type { Signals } from '../../postgres/signals.ts'
import { CoalescedTask } from '../../runner/coalesced.ts'
import { findEndedOperations } from '../../store/compute/operation-view.ts'
import { HeldResponses, type Holder } from './held-responses.ts'

/** Signals can be lost, so all waits are also checked at this interval. */
const pollMs = 2_000

export interface OperationWait {
  /** Returns the record of the ended operation; undefined after `ms`, or when the client disconnects. */
  within(ms: number, holder: Holder, response: ServerResponse): Promise<string | undefined>
  close(): void
}

type Resolve = (record: string) => void

/**
 * Requests of this process that wait for operations to end. If this process ended an operation, the signal
 * contains its record. Operations that other processes ended are read with one query for all waits.
 */
export class OperationWaits {
  readonly #database: Database
  readonly #held: HeldResponses
  readonly #waiting = new Map<string, Set<Resolve>>()
  readonly #toRead = new Set<string>()
  readonly #reading = new CoalescedTask(() => this.#read())
  readonly #unsubscribe: () => void
  readonly #timer: NodeJS.Timeout

  constructor(database: Database, signals: Signals, maxPerOrganization: number) {
    this.#database = database
    this.#held = new HeldResponses('waits for operations', maxPerOrganization)
    this.#unsubscribe = signals.on('ended', (ids, record) => {
      if (ids?.[0] !== undefined && record !== undefined) this.#resolve(ids[0], record)
      else this.#queueRead(ids ?? [...this.#waiting.keys()])
    })
    this.#timer = setInterval(() => this.#queueRead([...this.#waiting.keys()]), pollMs).unref()
  }

  /**
   * Call this before the operation is read. Otherwise, an end between the read and the wait would be missed.
   */
  begin(operationId: string): OperationWait {
    const waiters = this.#waiting.get(operationId) ?? new Set()
    this.#waiting.set(operationId, waiters)
    let resolve: Resolve = () => {}
    const ended = new Promise<string>((resolveEnded) => {
      resolve = resolveEnded
    })
    waiters.add(resolve)
    return {
      within: (ms, holder, response) => this.#wait(ended, ms, holder, response),
      close: () => {
        waiters.delete(resolve)
        if (waiters.size === 0 && this.#waiting.get(operationId) === waiters)
          this.#waiting.delete(operationId)
      },
    }
  }

  close(): void {
    this.#unsubscribe()
    clearInterval(this.#timer)
  }

  async #wait(ended: Promise<string>, ms: number, holder: Holder, response: ServerResponse) {
    const release = this.#held.hold(holder)
    const stopped = new AbortController()
    const stop = () => stopped.abort()
    response.once('close', stop)
    try {
      const timeout = delay(ms, undefined, { signal: stopped.signal }).catch(() => undefined)
      return await Promise.race([ended, timeout])
    } finally {
      stop()
      response.off('close', stop)
      release()
    }
  }

  #queueRead(ids: string[]): void {
    for (const id of ids) if (this.#waiting.has(id)) this.#toRead.add(id)
    // If the database is unavailable, the next poll reads again.
    if (this.#toRead.size > 0) this.#reading.run().catch(() => {})
  }

  async #read(): Promise<undefined> {
    const ids = [...this.#toRead]
    this.#toRead.clear()
    for (const { id, record } of await findEndedOperations(this.#database, ids)) this.#resolve(id, record)
  }

  #resolve(id: string, record: string): void {
    for (const resolve of this.#waiting.get(id) ?? []) resolve(record)
  }
}
