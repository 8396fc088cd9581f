import pg from 'pg'
import { ConnectionQueue, systemOwner } from './connection-queue.ts'
import { connectionOptions, ResponseWatch, sessionKeepAlive } from './connections.ts'
import { isOutdatedPlan, isRetryable } from './errors.ts'
import { JoinedSocket } from './joined-socket.ts'
import { type QueryResult, queryOf } from './prepared.ts'
import type { Queryable, Signal, Tx } from './queryable.ts'
import { type DatabaseServers, PrimaryClient, serversOf } from './servers.ts'
import type { Signals } from './signals.ts'
import { Traffic } from './traffic.ts'
import { Transaction } from './transaction.ts'

export * from './errors.ts'
export type * from './queryable.ts'

// 64-bit counts and generations stay far below 2^53.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

/**
 * How long a statement may go without a response. Together with the time for a new connection, this is less
 * than 30 seconds.
 */
const defaultResponseMs = 20_000
/**
 * The statement timeout of PostgreSQL, as a share of this limit. PostgreSQL ends a statement before this
 * process breaks the connection.
 */
const statementShare = 0.9
const maxAttempts = 8
const maxOwners = 10_000
/** The longest pause before the third attempt, which is the first with a pause. It doubles with every attempt. */
const longestFirstPauseMs = 4

export interface DatabaseOptions {
  /** One server, or several servers, one of which is the primary. */
  url: string | DatabaseServers
  poolSize: number
  applicationName?: string
  /** After this time without a response to a statement, its connection is broken. */
  responseMs?: number
  /** Receives the signals of committed transactions. */
  signals?: Pick<Signals, 'send'>
  onError?: (error: Error) => void
}

export class Database implements Queryable {
  readonly pool: pg.Pool
  readonly #servers: DatabaseServers
  readonly sharedReads = this
  readonly traffic = new Traffic()
  readonly connections: ConnectionQueue
  readonly #signals: Pick<Signals, 'send'> | undefined
  readonly #owners = new Map<string, Tx>()

  constructor(options: DatabaseOptions) {
    this.#servers = serversOf(options.url)
    this.#signals = options.signals
    this.connections = new ConnectionQueue(options.poolSize)
    const { responseMs = defaultResponseMs } = options
    this.pool = new pg.Pool({
      ...connectionOptions,
      // The pool passes all its options to the clients that it creates.
      Client: PrimaryClient as never,
      ...{ servers: this.#servers },
      max: options.poolSize,
      application_name: options.applicationName ?? 'slipway',
      // If a transaction sends several statements without waiting in between, they are sent together, in
      // order.
      pipeline: true,
      stream: () => new JoinedSocket(),
      // A new connection has no prepared statements, so the first requests after a quiet period should find
      // an existing connection. Networks drop idle connections after four minutes or more.
      idleTimeoutMillis: 120_000,
      // A process that hangs in the middle of a transaction must not keep its locks. Statements use generic
      // plans, because these are the plans that the tests check with a large database.
      options: `-c statement_timeout=${statementShare * responseMs} -c idle_in_transaction_session_timeout=8000 ${sessionKeepAlive} -c timezone=UTC -c plan_cache_mode=force_generic_plan`,
    })
    this.pool.on('error', (error) => {
      // The pool adds its client to the error, with details that must not be logged.
      Reflect.deleteProperty(error, 'client')
      // While the pool is closing, connections may still fail; these errors do not matter.
      if (!this.pool.ending) options.onError?.(error)
    })
    const watch = new ResponseWatch(responseMs)
    this.pool.on('connect', (client) => watch.add(client))
    this.pool.on('remove', (client) => watch.remove(client))
  }

  query(config: pg.QueryConfig, owner = systemOwner): Promise<QueryResult> {
    this.traffic.waited(config.name)
    this.traffic.sent(config.name)
    this.traffic.committed(config.name)
    const waiting = this.connections.take(owner)
    return waiting ? waiting.then(() => this.#send(config)) : this.#send(config)
  }

  #send(config: pg.QueryConfig): Promise<QueryResult> {
    return this.pool.query(queryOf(config)).then(this.#releaseAndReturn, (error) =>
      // A migration made the plan outdated, and the pool has closed the connection. Retries end once every
      // connection older than that migration has been closed.
      isOutdatedPlan(error) ? this.#send(config) : this.#releaseAndThrow(error),
    )
  }

  readonly #releaseAndReturn = (result: QueryResult): QueryResult => {
    this.connections.release()
    return result
  }

  readonly #releaseAndThrow = (error: unknown): never => {
    this.connections.release()
    throw error
  }

  send(...signal: Signal): void {
    this.#signals?.send(...signal)
  }

  /** For writes that need no transaction: each statement commits separately. */
  readonly withoutTransaction: Tx = this.#autocommit(systemOwner)

  /** Like `withoutTransaction`, for statements that wait for a connection in this owner's queue. */
  forOwner(owner: string): Tx {
    const known = this.#owners.get(owner)
    if (known) return known
    if (this.#owners.size >= maxOwners) this.#owners.clear()
    const tx = this.#autocommit(owner)
    this.#owners.set(owner, tx)
    return tx
  }

  #autocommit(owner: string): Tx {
    const query = (config: pg.QueryConfig) => this.query(config, owner)
    return autocommit(query, { sharedReads: this, signal: (...signal) => this.send(...signal) })
  }

  /**
   * Runs `work` in a transaction with the isolation level read committed. After a serialization failure, a
   * deadlock, a failed `assert_or_abort` or `TryAgain`, `work` runs again from the start. The first retry is
   * immediate; later ones follow after a pause, so that transactions that collided do not collide again. If a
   * request of a batch throws `TryAgain`, it leaves the batch. `owner` determines when the transaction gets a
   * connection.
   */
  async transaction<T>(
    work: (tx: Transaction) => Promise<T>,
    { isBatch = false, owner = systemOwner } = {},
  ): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      if (attempt > 2) await pauseBefore(attempt)
      const tx = new Transaction(await this.#connect(owner), this, isBatch)
      try {
        const result = await work(tx)
        await tx.commit()
        return result
      } catch (error) {
        const reason = await tx.rollback(error)
        // Each connection that is older than a migration may fail once.
        const limit = isOutdatedPlan(reason) ? maxAttempts + this.pool.options.max : maxAttempts
        if (attempt >= limit || !isRetryable(reason)) throw reason
      } finally {
        tx.close()
      }
    }
  }

  async #connect(owner: string): Promise<pg.PoolClient> {
    await this.connections.take(owner)
    return this.pool.connect().catch(this.#releaseAndThrow)
  }

  /** Returns the connection of a transaction to the pool. A broken connection is closed. */
  release(client: pg.PoolClient, broken: Error | undefined): void {
    client.release(broken)
    this.connections.release()
  }

  async close(): Promise<void> {
    await this.pool.end()
  }
}

function pauseBefore(attempt: number): Promise<void> {
  const ms = Math.random() * longestFirstPauseMs * 2 ** (attempt - 3)
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Returns a `Tx` without a transaction: each statement is sent immediately and commits separately. */
function autocommit(query: Queryable['query'], given: Pick<Tx, 'signal' | 'sharedReads'>): Tx {
  const tx: Tx = {
    ...given,
    query,
    database: undefined,
    mayWait: true,
    get batch() {
      return tx
    },
    enqueue: async (write, item) => void (await write(tx, [item])),
    awaitAtCommit: async (statement) => void (await statement),
    readWithCommit: async () => undefined,
    hasSignaled: () => false,
    onEnd: () => {},
  }
  return tx
}

/**
 * Does the work inside the transaction and then undoes it, to find out whether the work would succeed. Its
 * signals are not sent. If the work throws, the caller must end the transaction.
 */
export async function runAndRollBack(tx: Tx, work: (tx: Tx) => Promise<unknown>): Promise<void> {
  await tx.query({ text: 'SAVEPOINT tried_out' })
  await work(autocommit((config) => tx.query(config), { signal: () => {} }))
  await tx.query({ text: 'ROLLBACK TO SAVEPOINT tried_out' })
}
