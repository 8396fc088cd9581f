import pg from 'pg'
import { isDatabaseUnavailable, isOutdatedPlan, sqlState, TryAgain, UnknownOutcome } from './errors.ts'
import { type QueryResult, sendStatement } from './prepared.ts'
import type { Queryable, Signal, Tx } from './queryable.ts'
import { isWrite } from './statement.ts'
import { type Traffic, TransactionTraffic } from './traffic.ts'

/** SQLSTATE of a statement that PostgreSQL rejects because an earlier statement of the transaction failed. */
const inFailedTransaction = '25P02'

/** The part of a database that its transactions need. */
export interface TransactionHost {
  readonly traffic: Traffic
  send(...signal: Signal): void
  release(client: pg.PoolClient, broken: Error | undefined): void
}

type Write = (tx: Tx, items: never[]) => Promise<unknown>

/** One attempt at a transaction, on its own connection. */
export class Transaction implements Tx {
  readonly batch = this
  readonly #isShared: boolean
  readonly #client: pg.PoolClient
  readonly database: TransactionHost
  readonly #traffic: TransactionTraffic
  readonly #signals = new Map<string, Signal>()
  readonly #gathering: (() => void)[] = []
  readonly #queued = new Map<Write, unknown[]>()
  readonly #unawaited: Promise<unknown>[] = []
  readonly #readsWithCommit: (() => Promise<unknown>)[] = []
  readonly #onEnd: ((isCommitted: boolean) => void)[] = []
  #firstFailure: unknown
  #reading: Promise<unknown>[] = []
  #broken: Error | undefined
  #isCommitted = false

  constructor(client: pg.PoolClient, database: TransactionHost, isShared: boolean) {
    this.#client = client
    this.database = database
    this.#isShared = isShared
    this.#traffic = new TransactionTraffic(database.traffic)
  }

  /**
   * Runs gathered calls together, so that their statements are sent in one write. In a shared transaction, this happens at
   * the end of this turn of the event loop; otherwise in the next microtask.
   */
  readonly gather = (call: () => void): void => {
    this.#gathering.push(call)
    if (this.#gathering.length > 1) return
    const run = () => {
      for (const each of this.#gathering.splice(0)) each()
    }
    // Statements sent in this microtask and in later microtasks of the same turn are joined into one write
    // (`joined-socket.ts`).
    if (this.#isShared) setImmediate(() => queueMicrotask(run))
    else queueMicrotask(run)
  }

  get mayWait(): boolean {
    return !this.#isShared
  }

  query(config: pg.QueryConfig): Promise<QueryResult> {
    // In a batch, a read of one request does not send the queued writes of the others; those are sent
    // together, later.
    if (!this.#isShared || isWrite(config)) this.sendQueued()
    // BEGIN is sent with the first statement. If BEGIN fails, the connection is broken, and the statement
    // fails as well.
    if (this.#traffic.firstName === undefined) this.#client.query('BEGIN').catch(() => {})
    this.#traffic.sent(config.name)
    return sendStatement(this.#client, config)
  }

  async enqueue<Item>(write: (tx: Tx, items: Item[]) => Promise<unknown>, item: Item): Promise<void> {
    const items = this.#queued.get(write as Write)
    if (items) items.push(item)
    else this.#queued.set(write as Write, [item])
  }

  async awaitAtCommit(statement: Promise<unknown>): Promise<void> {
    this.#unawaited.push(
      statement.catch((error) => {
        if (sqlState(error) !== inFailedTransaction) this.#firstFailure ??= error
      }),
    )
  }

  readWithCommit<T>(read: (db: Queryable) => Promise<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      this.#readsWithCommit.push(async () => {
        try {
          resolve(await read(this.#afterCommit))
        } catch {
          resolve(undefined)
        }
      })
    })
  }

  signal(...signal: Signal): void {
    this.#signals.set(`${signal[0]} ${signal[1]}`, signal)
  }

  hasSignaled(topic: Signal[0]): boolean {
    return [...this.#signals.values()].some(([each]) => each === topic)
  }

  onEnd(run: (isCommitted: boolean) => void): void {
    this.#onEnd.push(run)
  }

  /** Sends queued writes together with COMMIT, then the signals. */
  async commit(): Promise<void> {
    this.sendQueued()
    if (this.#traffic.firstName !== undefined) {
      this.#traffic.committing()
      const committing = commit(this.#client)
      this.#reading = this.#readsWithCommit.map((read) => read())
      await committing
      this.#traffic.committed()
    }
    this.#isCommitted = true
    // The results of the unawaited statements arrived before that of COMMIT. Wait until their callbacks have run, and only
    // then send the signals.
    await Promise.all(this.#unawaited)
    for (const signal of this.#signals.values()) this.database.send(...signal)
  }

  /** Rolls back. Returns the first error of a statement passed to `awaitAtCommit`, otherwise `error`. */
  async rollback(error: unknown): Promise<unknown> {
    if (this.#traffic.firstName !== undefined)
      await this.#client.query('ROLLBACK').catch((reason: Error) => {
        this.#broken = reason
      })
    await Promise.all(this.#unawaited)
    const reason = error instanceof UnknownOutcome ? error : (this.#firstFailure ?? error)
    // For example, after a failover, only a new connection reaches the server that accepts writes.
    if (reason instanceof Error && (isDatabaseUnavailable(reason) || isOutdatedPlan(reason)))
      this.#broken ??= reason
    return reason
  }

  /** Releases the connection as soon as the reads that were sent with the commit have ended. */
  close(): void {
    const release = () => this.database.release(this.#client, this.#broken)
    if (this.#reading.length === 0) release()
    else void Promise.all(this.#reading).then(release)
    for (const run of this.#onEnd) run(this.#isCommitted)
  }

  /** Sends all queued writes. */
  sendQueued(): void {
    if (this.#queued.size === 0) return
    const queued = [...this.#queued]
    this.#queued.clear()
    for (const [write, items] of queued) void this.awaitAtCommit(write(this, items as never[]))
  }

  /** Sends statements right after COMMIT on the same connection, without waiting for its result. */
  readonly #afterCommit: Queryable = {
    query: (config) => {
      this.database.traffic.sent(config.name)
      this.database.traffic.committed(config.name)
      return sendStatement(this.#client, config)
    },
  }
}

async function commit(client: pg.PoolClient): Promise<void> {
  const { command } = await client.query('COMMIT').catch((error) => {
    // If PostgreSQL responds to COMMIT with an error, the transaction was rolled back. If the session ends instead, the
    // outcome is unknown.
    const isRolledBack = error instanceof pg.DatabaseError && error.severity === 'ERROR'
    throw isDatabaseUnavailable(error) && !isRolledBack
      ? new UnknownOutcome('the connection broke during the commit', { cause: error })
      : error
  })
  // PostgreSQL responds to COMMIT with ROLLBACK if an earlier statement failed.
  if (command === 'ROLLBACK') throw new Error('an earlier statement of the transaction failed')
}

/** A transaction as one request of a batch sees it. */
export class BatchMember implements Tx {
  readonly batch: Transaction
  readonly database: TransactionHost
  readonly mayWait = false
  readonly gather: NonNullable<Queryable['gather']>
  /** A request that fails before it has written anything can be removed from the batch. */
  hasWritten = false

  constructor(batch: Transaction) {
    this.batch = batch
    this.database = batch.database
    this.gather = batch.gather
  }

  query(config: pg.QueryConfig): Promise<QueryResult> {
    // A request must see its own writes, so send them before it reads.
    if (this.hasWritten) this.batch.sendQueued()
    if (isWrite(config)) this.hasWritten = true
    return this.batch.query(config)
  }

  enqueue<Item>(write: (tx: Tx, items: Item[]) => Promise<unknown>, item: Item): Promise<void> {
    this.hasWritten = true
    return this.batch.enqueue(write, item)
  }

  awaitAtCommit(statement: Promise<unknown>): Promise<void> {
    return this.batch.awaitAtCommit(statement)
  }

  readWithCommit<T>(read: (db: Queryable) => Promise<T>): Promise<T | undefined> {
    return this.batch.readWithCommit(read)
  }

  signal(...signal: Signal): void {
    this.batch.signal(...signal)
  }

  hasSignaled(topic: Signal[0]): boolean {
    return this.batch.hasSignaled(topic)
  }

  onEnd(run: (isCommitted: boolean) => void): void {
    this.batch.onEnd(run)
  }
}

/**
 * Returns the error for a request that would have to wait in its batch. It is retried in its own transaction.
 */
export const retryAlone = (reason: string) => new TryAgain(reason)
