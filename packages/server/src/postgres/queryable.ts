import type pg from 'pg'
import type { QueryResult } from './prepared.ts'
import type { Topic } from './signals.ts'

/** What a statement runs on: the pool, or one transaction. */
export interface Queryable {
  query(config: pg.QueryConfig): Promise<QueryResult>
  /** Set if reads by key of unrelated callers share a statement (`keyed.ts`). */
  readonly sharedReads?: Queryable
  /** Schedules gathered calls. Without it they run at the end of this turn of the event loop. */
  readonly gather?: (run: () => void) => void
}

/** A topic, the id of its subject, and the subject's record if this process has it. */
export type Signal = [topic: Topic, subject?: string, record?: string]

/** One transaction. */
export interface Tx extends Queryable {
  /** The database of the transaction; undefined if each statement is its own transaction. */
  readonly database: object | undefined
  /** The transaction that a batch of requests shares; outside of a batch, this one. */
  readonly batch: Tx
  /** False in a batch: other requests would wait as well. */
  readonly mayWait: boolean
  /**
   * For a write with a result that no later code needs, or that fails by itself if a condition is not met. The calls of a
   * batch become one statement, which is sent before the next statement of the transaction, or with the commit.
   */
  enqueue<Item>(write: (tx: Tx, items: Item[]) => Promise<unknown>, item: Item): Promise<void>
  /** For a statement that is already sent: only the commit waits for it. If it fails, the transaction fails. */
  awaitAtCommit(statement: Promise<unknown>): Promise<void>
  /**
   * A read that goes to the database together with the commit, and sees what it wrote. Resolves to undefined if the read
   * fails, and never settles if the transaction fails.
   */
  readWithCommit<T>(read: (db: Queryable) => Promise<T>): Promise<T | undefined>
  /** Wakes the waiters of the topic, in all processes, once the transaction has committed. */
  signal(...signal: Signal): void
  hasSignalled(topic: Topic): boolean
  /** Runs after the commit or the rollback. */
  onEnd(run: (isCommitted: boolean) => void): void
}
