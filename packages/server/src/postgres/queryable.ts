import type pg from 'pg'
import type { QueryResult } from './prepared.ts'
import type { Topic } from './signals.ts'

/** Where a statement runs: on the pool, or in a transaction. */
export interface Queryable {
  query(config: pg.QueryConfig): Promise<QueryResult>
  /** Set if keyed reads of unrelated callers share a statement (`keyed.ts`). */
  readonly sharedReads?: Queryable
  /** Schedules gathered calls. If it is not set, they run at the end of this turn of the event loop. */
  readonly gather?: (run: () => void) => void
}

/** A topic, the id of its subject, and the subject's record if this process has it. */
export type Signal = [topic: Topic, subject?: string, record?: string]

/** One transaction. */
export interface Tx extends Queryable {
  /** The database of the transaction; undefined if each statement is its own transaction. */
  readonly database: object | undefined
  /** The transaction that the requests of a batch share; outside a batch, this transaction. */
  readonly batch: Tx
  /** False in a batch, because other requests would have to wait as well. */
  readonly mayWait: boolean
  /**
   * Queues a write whose result no later code needs. If a condition is not met, the write itself must fail.
   * The calls of a batch become one statement, which is sent before the next statement of the transaction, or
   * with the commit.
   */
  enqueue<Item>(write: (tx: Tx, items: Item[]) => Promise<unknown>, item: Item): Promise<void>
  /**
   * For a statement that is already sent and that only the commit waits for. If it fails, the transaction
   * fails.
   */
  awaitAtCommit(statement: Promise<unknown>): Promise<void>
  /**
   * Sends a read together with the commit; it sees what the transaction wrote. Resolves to undefined if the
   * read fails, and never settles if the transaction fails.
   */
  readWithCommit<T>(read: (db: Queryable) => Promise<T>): Promise<T | undefined>
  /** Wakes the listeners of the topic, in all processes, once the transaction has committed. */
  signal(...signal: Signal): void
  hasSignaled(topic: Topic): boolean
  /** Runs after the commit or the rollback. */
  onEnd(run: (isCommitted: boolean) => void): void
}
