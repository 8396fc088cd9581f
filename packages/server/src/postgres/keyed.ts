import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

/** Reads one row by its key. */
export interface KeyedStatement<Row, Key> {
  one(db: Queryable, key: Key): Promise<Row | undefined>
}

/** What tells keys apart is their text. */
type KeyMembers<Key> = { [Member in keyof Key]: string | number }

/** Keys that go together, each once, by their names, and who waits for what is read by them. */
class Batch<Row, Key> {
  readonly #asked = new Map<
    string,
    {
      key: Key
      answer: Promise<Row | undefined>
      resolve(row: Row | undefined): void
      reject(error: unknown): void
    }
  >()

  add(name: string, key: Key): Promise<Row | undefined> {
    const known = this.#asked.get(name)
    if (known) return known.answer
    let [resolve, reject] = [(_: Row | undefined) => {}, (_: unknown) => {}]
    const answer = new Promise<Row | undefined>((...settlers) => {
      ;[resolve, reject] = settlers
    })
    this.#asked.set(name, { key, answer, resolve, reject })
    return answer
  }

  get keys(): Key[] {
    return Array.from(this.#asked.values(), ({ key }) => key)
  }

  resolve(rows: Map<string, Row>): void {
    for (const [name, { resolve }] of this.#asked) resolve(rows.get(name))
  }

  reject(error: unknown): void {
    for (const { reject } of this.#asked.values()) reject(error)
  }
}

/** A batch that has not ended by then holds nobody up: the next one does not wait for it. */
const patienceMs = 20

/**
 * The batches of one statement: while one is under way, the next forms, and it begins when those who were answered have
 * had a turn of the event loop to ask again. What comes alone goes at once.
 */
class ReadQueue<Row, Key> {
  readonly #read: (keys: Key[]) => Promise<Map<string, Row>>
  readonly #gather: NonNullable<Queryable['gather']>
  #next: Batch<Row, Key> | undefined
  #underWay: Batch<Row, Key> | undefined

  /** `read` says which name each row is for. */
  constructor(read: (keys: Key[]) => Promise<Map<string, Row>>, gather: Queryable['gather'] = setImmediate) {
    this.#read = read
    this.#gather = gather
  }

  get isIdle(): boolean {
    return !this.#next && !this.#underWay
  }

  add(name: string, key: Key): Promise<Row | undefined> {
    if (!this.#next) {
      const batch = new Batch<Row, Key>()
      this.#next = batch
      // Those who ask in the same turn of the event loop come along.
      if (!this.#underWay) this.#gather(() => void this.#begin(batch))
      else setTimeout(() => this.#begin(batch), patienceMs)
    }
    return this.#next.add(name, key)
  }

  async #begin(batch: Batch<Row, Key>): Promise<void> {
    if (this.#next !== batch) return
    this.#next = undefined
    this.#underWay = batch
    // It has left before its readers are answered: the last of them finds the line idle.
    const leave = () => {
      if (this.#underWay !== batch) return
      this.#underWay = undefined
      const next = this.#next
      if (next) this.#gather(() => this.#gather(() => this.#begin(next)))
    }
    await this.#read(batch.keys).then(
      (rows) => {
        leave()
        batch.resolve(rows)
      },
      (error) => {
        leave()
        batch.reject(error)
      },
    )
  }
}

/**
 * A read by key that many ask for. Those who wait together share a statement, which begins after they asked: what was
 * committed before is seen. In a transaction it is a statement of its own, but `withSharedReads`.
 *
 * In `text` each member of the key is a list (`:id::uuid[]`). A row has the members of its key, under their names: it
 * answers those who asked by all of them, and nobody else.
 */
export function keyedStatement<Row, Key extends KeyMembers<Key>>(
  name: string,
  text: string,
): KeyedStatement<Row, Key> {
  const several = statement<Row & Key, Record<string, unknown[]>>(name, text)
  const lines = new WeakMap<Queryable, ReadQueue<Row, Key>>()
  let members: (keyof Key & string)[] | undefined
  const nameOf = (key: Key) => {
    let name = String(key[members![0]!])
    // No text of PostgreSQL has a NUL in it.
    for (let i = 1; i < members!.length; i++) name += `\0${key[members![i]!]}`
    return name
  }

  async function read(db: Queryable, keys: Key[]): Promise<Map<string, Row>> {
    const lists = Object.fromEntries(members!.map((member) => [member, keys.map((key) => key[member])]))
    return new Map((await several.all(db, lists)).map((row) => [nameOf(row), row]))
  }

  return {
    one(db, key) {
      members ??= Object.keys(key) as (keyof Key & string)[]
      if (!db.isShared) return read(db, [key]).then((rows) => rows.get(nameOf(key)))
      let line = lines.get(db)
      if (!line) {
        line = new ReadQueue((keys) => read(db, keys), db.gather)
        lines.set(db, line)
      }
      return line.add(nameOf(key), key)
    },
  }
}

/**
 * The transaction, where those who wait together share a statement as well. All of them ask at once: what they ask goes
 * with the transaction's first statements.
 */
export const withSharedReads = (tx: Queryable): Queryable => ({
  isShared: true,
  gather: tx.gather ?? queueMicrotask,
  query: (config) => tx.query(config),
})

/** The same for reads of any form: those who wait together and ask the same share an answer. */
export function sharedRead<Question, Answer>(
  find: (db: Queryable, question: Question) => Promise<Answer>,
): (db: Queryable, question: Question) => Promise<Answer> {
  const asked = new WeakMap<Queryable, Map<string, ReadQueue<Answer, string>>>()
  return async (db, question) => {
    if (!db.isShared) return find(db, question)
    let lines = asked.get(db)
    if (!lines) {
      lines = new Map()
      asked.set(db, lines)
    }
    const name = JSON.stringify(question)
    let line = lines.get(name)
    if (!line) {
      line = new ReadQueue(async () => new Map([[name, await find(db, question)]]))
      lines.set(name, line)
    }
    try {
      return (await line.add(name, name)) as Answer
    } finally {
      if (line.isIdle) lines.delete(name)
    }
  }
}
