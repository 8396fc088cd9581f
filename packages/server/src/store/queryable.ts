import type pg from 'pg'
import type { ClaimedOperation } from './compute/operation-row.ts'
import type { Answer } from './prepared.ts'
import type { Topic } from './signals.ts'

/** Where a statement runs: the pool, or one transaction. */
export interface Queryable {
  query(config: pg.QueryConfig): Promise<Answer>
  /** Whether statements of unrelated callers run here as well, so that their reads may go together (`keyed.ts`). */
  readonly isShared?: true
  /** When gathered calls run: at the end of this turn of the event loop, unless it says otherwise. */
  readonly gather?: (run: () => void) => void
}

/** A topic, what it is about, and the record of that where this process knows it. */
export type Signal = [topic: Topic, subject?: string, record?: string]

/** One transaction. */
export interface Tx extends Queryable {
  /** The transaction that a batch of requests shares; outside of a batch, this one. */
  readonly batch: Tx
  /** False in a batch: other requests would wait as well. */
  readonly mayWait: boolean
  /**
   * For a write whose result decides nothing, or that fails by itself if it is not as it must be. The calls of a batch become
   * one statement, which is sent before the next statement of the transaction, or with the commit.
   */
  enqueue<Item>(write: (tx: Tx, items: Item[]) => Promise<unknown>, item: Item): Promise<void>
  /** The same for a statement that was sent already: only the commit waits for it. If it fails, the transaction fails. */
  awaitAtCommit(statement: Promise<unknown>): Promise<void>
  /**
   * A read that goes to the database together with the commit, and sees what it wrote. Undefined if it cannot be read so;
   * never answered if the transaction fails.
   */
  readAhead<T>(read: (db: Queryable) => Promise<T>): Promise<T | undefined>
  /** Wakes the waiters of the topic, in all processes, once the transaction has committed. */
  signal(...signal: Signal): void
  hasSignalled(topic: Topic): boolean
  onRollback(run: () => void): void
  /** A slot for an operation at the worker of this process; undefined if there is none. A rollback frees it. */
  reserveSlot(projectId: string, location: string): WorkerSlot | undefined
}

/** One of a worker's slots, held for an operation that is being written. */
export interface WorkerSlot {
  /** The lease that the operation is born with. */
  token: string
  leaseMs: number
  /** The operation in it. The worker begins it once the transaction has committed. */
  fill(operation: ClaimedOperation): void
}

/** The worker of a process, as its transactions see it. */
export interface LocalWorker {
  /** `close` ends the reservation: it begins what is in the slot, or frees it. */
  reserve(
    projectId: string,
    location: string,
  ): (WorkerSlot & { close(isCommitted: boolean): void }) | undefined
}
