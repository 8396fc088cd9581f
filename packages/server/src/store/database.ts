import pg from 'pg'
import type { ClaimedOperation } from './compute/operation-row.ts'
import { JoinedSocket } from './joined-socket.ts'
import { type Answer, ask, queryOf } from './prepared.ts'
import type { Signals, Topic } from './signals.ts'
import { Traffic, TransactionTraffic } from './traffic.ts'

// 64-bit counts and generations stay far below 2^53.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

/** Where a statement runs: the pool, or one transaction. */
export interface Queryable {
  query(config: pg.QueryConfig): Promise<Answer>
  /** Whether strangers' statements run here as well, so that reads may go together (`keyed.ts`). */
  readonly isShared?: true
  /** When such reads begin: at the end of this turn of the event loop, unless it says otherwise. */
  readonly gather?: (begin: () => void) => void
}

/** One transaction. */
export interface Tx extends Queryable {
  /**
   * Wakes those who wait for the topic, in all processes, once the transaction has committed. Those of this process get
   * the subject's record with it, if there is one.
   */
  signal(topic: Topic, subject?: string, record?: string): void
  hasSignalled(topic: Topic): boolean
  /** A place for an operation at the worker of this process; undefined if there is none. It is free again on a rollback. */
  reservePlace(projectId: string, location: string): Place | undefined
  /**
   * For a statement whose outcome decides nothing, or that fails by itself if it is not as it must be: nobody waits for it
   * but the commit, so that it goes to the database together with what follows. If it fails, the transaction fails by its
   * error. What is done with its answer is done before the transaction's wake-ups.
   */
  withCommit(statement: Promise<unknown>): Promise<void>
  /**
   * A read that goes to the database together with the commit, and sees what it wrote. Undefined if it cannot be read so;
   * never answered if the transaction fails.
   */
  readAhead<T>(read: (db: Queryable) => Promise<T>): Promise<T | undefined>
}

/** One of a worker's places, held for an operation that is being written. */
export interface Place {
  /** The lease that the operation is born with. */
  token: string
  leaseMs: number
  /** The operation in it. Once the transaction has committed, the worker begins it. */
  fill(operation: ClaimedOperation): void
}

/** The worker of a process, as its transactions see it. */
export interface LocalWorker {
  /** `close` ends the reservation: it begins what is in the place, or frees it. */
  reserve(projectId: string, location: string): (Place & { close(isCommitted: boolean): void }) | undefined
}

/** Thrown to have the whole transaction tried again: a random choice collided with another transaction's. */
export class TryAgain extends Error {}

/** The connection broke at the commit: what was written may stand or not. */
export class UnknownOutcome extends Error {}

const serializationFailure = '40001'
const deadlockDetected = '40P01'
/** What a statement insisted on (`insist` of the schema) is not so. */
const unmet = 'SL001'
/** Said of a statement that comes after the one that failed. */
const failedBefore = '25P02'
const mostAttempts = 8
/** Twice as long for every further attempt. */
const longestFirstPauseMs = 4

export interface DatabaseOptions {
  url: string
  poolSize: number
  applicationName?: string
  /** Who is woken by what transactions signal; nobody without it. */
  signals?: Pick<Signals, 'send'>
  onError?: (error: Error) => void
}

export class Database implements Queryable {
  readonly pool: pg.Pool
  readonly url: string
  readonly isShared = true
  readonly traffic = new Traffic()
  readonly #signals: Pick<Signals, 'send'> | undefined
  /** Set where the process is a worker, too: what it admits begins at once. */
  worker: LocalWorker | undefined

  constructor(options: DatabaseOptions) {
    this.url = options.url
    this.#signals = options.signals
    this.pool = new pg.Pool({
      connectionString: options.url,
      max: options.poolSize,
      application_name: options.applicationName ?? 'slipway',
      // What a transaction asks without waiting in between goes to the database in one piece, in order.
      pipeline: true,
      stream: () => new JoinedSocket(),
      connectionTimeoutMillis: 8_000,
      // A new one knows no statement: whoever comes after a quiet time should not pay for that. Networks in between forget
      // a silent connection after four minutes and more.
      idleTimeoutMillis: 120_000,
      // A process that was stopped in the middle of a transaction must not keep its locks.
      // Statements are planned once, without their values: such are the plans that are tested against a grown store.
      options:
        '-c statement_timeout=25000 -c idle_in_transaction_session_timeout=8000 -c timezone=UTC -c plan_cache_mode=force_generic_plan',
    })
    this.pool.on('error', (error) => {
      // The pool hangs its client on it, with all that a log should not hold.
      Reflect.deleteProperty(error, 'client')
      // A pool has ended before its connections have: what the database still says to them is no loss.
      if (!this.pool.ending) options.onError?.(error)
    })
    // A connection that breaks in the middle of a transaction says so twice: to the statement under way, which counts,
    // and as an event, which would end the process if nobody listened.
    this.pool.on('connect', (client) => client.on('error', () => {}))
  }

  query(config: pg.QueryConfig): Promise<Answer> {
    this.traffic.waited(config.name)
    this.traffic.sent(config.name)
    this.traffic.committed(config.name)
    return this.pool.query(queryOf(config))
  }

  /** This is for what needs no transaction: every statement stands by itself. */
  readonly withoutTransaction: Tx = {
    isShared: true,
    query: (config) => this.query(config),
    signal: (...news) => this.#signals?.send(...news),
    hasSignalled: () => false,
    reservePlace: () => undefined,
    withCommit: async (statement) => void (await statement),
    readAhead: async () => undefined,
  }

  /**
   * Runs as read committed. Serialization failures, deadlocks, what is not as a statement insists and `TryAgain` run `work`
   * again from the start: at once the first time, then after a pause, so that those who collided do not do so again.
   */
  async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      if (attempt > 2) await pauseBefore(attempt)
      const signalled = new Map<string, Parameters<Tx['signal']>>()
      const places: { close(isCommitted: boolean): void }[] = []
      let isCommitted = false
      const client = await this.pool.connect()
      let broken: Error | undefined
      const traffic = new TransactionTraffic(this.traffic)
      const unawaited: Promise<unknown>[] = []
      const ahead: (() => Promise<unknown>)[] = []
      let reading: Promise<unknown>[] = []
      let firstFailure: unknown
      try {
        const result = await work({
          query: (config) => {
            // It goes with the first statement: should it fail, the connection is gone, and so is that.
            if (traffic.firstName === undefined) client.query('BEGIN').catch(() => {})
            traffic.sent(config.name)
            return ask(client, config)
          },
          withCommit: async (statement) => {
            unawaited.push(
              statement.catch((error) => {
                if (sqlState(error) !== failedBefore) firstFailure ??= error
              }),
            )
          },
          readAhead: (read) =>
            new Promise((resolve) => {
              ahead.push(async () => {
                try {
                  resolve(await read(this.#behind(client)))
                } catch {
                  resolve(undefined)
                }
              })
            }),
          signal: (...news) => signalled.set(`${news[0]} ${news[1]}`, news),
          hasSignalled: (topic) => [...signalled.values()].some(([each]) => each === topic),
          reservePlace: (projectId, location) => {
            const place = this.worker?.reserve(projectId, location)
            if (place) places.push(place)
            return place
          },
        })
        if (traffic.firstName !== undefined) {
          traffic.committing()
          const committing = commit(client)
          reading = ahead.map((read) => read())
          await committing
          traffic.committed()
        }
        isCommitted = true
        // They were answered before the commit; what is done with their answers is done before the wake-ups.
        await Promise.all(unawaited)
        for (const news of signalled.values()) this.#signals?.send(...news)
        return result
      } catch (error) {
        if (traffic.firstName !== undefined)
          await client.query('ROLLBACK').catch((reason: Error) => {
            broken = reason
          })
        await Promise.all(unawaited)
        const reason = error instanceof UnknownOutcome ? error : (firstFailure ?? error)
        if (attempt >= mostAttempts || !isWorthAnotherTry(reason)) throw reason
      } finally {
        // Who takes the connection next would wait for these.
        if (reading.length === 0) client.release(broken)
        else void Promise.all(reading).then(() => client.release(broken))
        for (const place of places) place.close(isCommitted)
      }
    }
  }

  /** Behind a commit that is on its way, on the same connection: nobody waits once more. */
  #behind(client: pg.PoolClient): Queryable {
    return {
      query: (config) => {
        this.traffic.sent(config.name)
        this.traffic.committed(config.name)
        return ask(client, config)
      },
    }
  }

  async close(): Promise<void> {
    await this.pool.end()
  }
}

function pauseBefore(attempt: number): Promise<void> {
  const ms = Math.random() * longestFirstPauseMs * 2 ** (attempt - 3)
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function commit(client: pg.PoolClient): Promise<void> {
  const { command } = await client.query('COMMIT').catch((error) => {
    throw isDatabaseAway(error)
      ? new UnknownOutcome('the connection broke at the commit', { cause: error })
      : error
  })
  // This is what a commit says after a statement that failed.
  if (command === 'ROLLBACK') throw new Error('a statement of the transaction had failed')
}

/**
 * Does the work inside the transaction and takes all of it back, wake-ups included: for finding out whether it could
 * be done. What it throws passes, and then ends the transaction.
 */
export async function tryOut(tx: Tx, work: (tx: Tx) => Promise<unknown>): Promise<void> {
  await tx.query({ text: 'SAVEPOINT tried_out' })
  await work({
    query: (config) => tx.query(config),
    signal: () => {},
    hasSignalled: () => false,
    reservePlace: () => undefined,
    withCommit: async (statement) => void (await statement),
    readAhead: async () => undefined,
  })
  await tx.query({ text: 'ROLLBACK TO SAVEPOINT tried_out' })
}

/** Whether a transaction that failed so may succeed at another time. */
export function isWorthAnotherTry(error: unknown): boolean {
  const code = sqlState(error)
  return (
    error instanceof TryAgain ||
    code === serializationFailure ||
    code === deadlockDetected ||
    // Somebody was faster: it looks again.
    code === unmet
  )
}

export function sqlState(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Whether it is what a statement says that insists on something. */
export const isUnmet = (error: unknown): boolean => sqlState(error) === unmet

/** Returns the unique or exclusion constraint that a statement ran into, if that is what happened. */
export function violatedConstraint(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError && (error.code === '23505' || error.code === '23P01')
    ? error.constraint
    : undefined
}

/** Returns whether the database is away, as opposed to disagreeing with the statement. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof UnknownOutcome) return true
  const code = sqlState(error)
  if (code !== undefined) {
    if (/^(08|57P0|53)/.test(code)) return true
    if (/^(ECONN|EPIPE|ENOENT|ENOTFOUND|EAI_|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)/.test(code)) return true
  }
  return (
    error instanceof Error &&
    /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after/.test(
      error.message,
    )
  )
}

/** Returns whether the database does not let us in: a wrong user, password or name. */
export const isDatabaseRefusal = (error: unknown): boolean => /^(28|3D)/.test(sqlState(error) ?? '')
