import type { Queryable } from './database.ts'
import { columns, statement } from './statement.ts'

/** Reads one row by its key. */
export interface KeyedStatement<Row, Key> {
  one(db: Queryable, key: Key): Promise<Row | undefined>
}

/** Keys are compared by the text of their fields. */
type KeyMembers<Key> = { [Member in keyof Key]: string | number }

/** Reads that share one statement. A key that several callers request is read once. */
class Batch<Row, Key> {
  readonly keys = new Map<string, Key>()
  readonly rows: Promise<Map<string, Row>>
  resolve!: (rows: Map<string, Row>) => void
  reject!: (error: unknown) => void

  constructor() {
    this.rows = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }
}

/** The next batch starts after this time, even if the previous one has not ended. */
const maxWaitMs = 20

/**
 * The batches of one statement. While one batch is running, new reads collect in the next one. It starts when
 * the callers of the previous batch have had a turn of the event loop to make further reads. A single read
 * starts immediately.
 */
class ReadQueue<Row, Key> {
  readonly #read: (keys: Key[]) => Promise<Map<string, Row>>
  readonly #gather: NonNullable<Queryable['gather']>
  #next: Batch<Row, Key> | undefined
  #running: Batch<Row, Key> | undefined

  /** `read` returns a map from the names of keys to rows. */
  constructor(read: (keys: Key[]) => Promise<Map<string, Row>>, gather: Queryable['gather'] = setImmediate) {
    this.#read = read
    this.#gather = gather
  }

  get isIdle(): boolean {
    return !this.#next && !this.#running
  }

  add(name: string, key: Key): Promise<Row | undefined> {
    this.#next ??= this.#form()
    const { keys, rows } = this.#next
    keys.set(name, key)
    return rows.then((found) => found.get(name))
  }

  #form(): Batch<Row, Key> {
    const batch = new Batch<Row, Key>()
    if (this.#running) setTimeout(() => this.#run(batch), maxWaitMs)
    else this.#gather(() => void this.#run(batch))
    return batch
  }

  async #run(batch: Batch<Row, Key>): Promise<void> {
    if (this.#next !== batch) return
    this.#next = undefined
    this.#running = batch
    // Update the queue before resolving its readers, so that the last reader finds it idle.
    await this.#read([...batch.keys.values()])
      .finally(() => this.#startNextAfter(batch))
      .then(batch.resolve, batch.reject)
  }

  #startNextAfter(batch: Batch<Row, Key>): void {
    if (this.#running !== batch) return
    this.#running = undefined
    const next = this.#next
    if (next) this.#gather(() => this.#gather(() => this.#run(next)))
  }
}

/**
 * A read by key that many callers make concurrently. Callers that wait at the same time share a statement. It
 * starts after their calls, so that it sees everything that was committed before. In a transaction, each read is
 * its own statement, except with `withSharedReads`.
 *
 * In `text`, each field of the key is an array (`:id::uuid[]`). A row has the fields of its key, under the same
 * names, and is the result for that key only.
 */
export function keyedStatement<Row, Key extends KeyMembers<Key>>(
  name: string,
  text: string,
): KeyedStatement<Row, Key> {
  const several = statement<Row & Key, Record<string, unknown[]>>(name, text)
  const queues = new WeakMap<Queryable, ReadQueue<Row, Key>>()
  let members: (keyof Key & string)[] | undefined
  const nameOf = (key: Key) => {
    let name = String(key[members![0]!])
    // Text in PostgreSQL contains no NUL, so two keys never have the same name.
    for (let i = 1; i < members!.length; i++) name += `\0${key[members![i]!]}`
    return name
  }

  async function read(db: Queryable, keys: Key[]): Promise<Map<string, Row>> {
    const rows = await several.all(db, columns(keys, members!))
    return new Map(rows.map((row) => [nameOf(row), row]))
  }

  return {
    one(db, key) {
      members ??= Object.keys(key) as (keyof Key & string)[]
      const shared = db.sharedReads
      if (!shared) return read(db, [key]).then((rows) => rows.get(nameOf(key)))
      let queue = queues.get(shared)
      if (!queue) {
        queue = new ReadQueue((keys) => read(shared, keys), shared.gather)
        queues.set(shared, queue)
      }
      return queue.add(nameOf(key), key)
    },
  }
}

/**
 * Returns a `Queryable` for the transaction in which concurrent reads share a statement. This statement is sent
 * with the first statements of the transaction.
 */
export function withSharedReads(tx: Queryable): Queryable {
  const shared: Queryable = {
    get sharedReads() {
      return shared
    },
    gather: tx.gather ?? queueMicrotask,
    query: (config) => tx.query(config),
  }
  return shared
}

/** Shares the results of any read: concurrent callers with the same question get the same result. */
export function sharedRead<Question, Result>(
  find: (db: Queryable, question: Question) => Promise<Result>,
): (db: Queryable, question: Question) => Promise<Result> {
  const queuesOf = new WeakMap<Queryable, Map<string, ReadQueue<Result, string>>>()
  return async (db, question) => {
    if (!db.sharedReads) return find(db, question)
    const queues = queuesOf.get(db) ?? new Map<string, ReadQueue<Result, string>>()
    queuesOf.set(db, queues)
    const name = JSON.stringify(question)
    const read = async () => new Map<string, Result>([[name, await find(db, question)]])
    const queue = queues.get(name) ?? new ReadQueue<Result, string>(read)
    queues.set(name, queue)
    try {
      return (await queue.add(name, name)) as Result
    } finally {
      if (queue.isIdle) queues.delete(name)
    }
  }
}
