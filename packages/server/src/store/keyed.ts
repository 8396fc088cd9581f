import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

/** Reads one row by its key. */
export interface KeyedStatement<Row, Key> {
  one(db: Queryable, key: Key): Promise<Row | undefined>
}

/** What tells keys apart is their text. */
type KeyMembers<Key> = { [Member in keyof Key]: string | number }

/** Keys that go together, each once, and who waits for what is read by them. */
class Batch<Row, Key> {
  readonly keys: Key[] = []
  readonly #answers = new Map<string, Promise<Row | undefined>>()
  readonly #waiting: { resolve(row: Row | undefined): void; reject(error: unknown): void }[] = []

  add(key: Key): Promise<Row | undefined> {
    const name = JSON.stringify(Object.values(key as object))
    let answer = this.#answers.get(name)
    if (!answer) {
      this.keys.push(key)
      answer = new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
      this.#answers.set(name, answer)
    }
    return answer
  }

  resolve(rows: (Row | undefined)[]): void {
    for (const [index, { resolve }] of this.#waiting.entries()) resolve(rows[index])
  }

  reject(error: unknown): void {
    for (const { reject } of this.#waiting) reject(error)
  }
}

/** A batch that has not ended by then holds nobody up: the next one does not wait for it. */
const patienceMs = 20

/** The batches of one statement: while one is under way, the next forms. What comes alone goes at once. */
class Line<Row, Key> {
  readonly #read: (keys: Key[]) => Promise<(Row | undefined)[]>
  #next: Batch<Row, Key> | undefined
  #underWay: Batch<Row, Key> | undefined

  constructor(read: (keys: Key[]) => Promise<(Row | undefined)[]>) {
    this.#read = read
  }

  get isIdle(): boolean {
    return !this.#next && !this.#underWay
  }

  add(key: Key): Promise<Row | undefined> {
    if (!this.#next) {
      const batch = new Batch<Row, Key>()
      this.#next = batch
      // Those who ask in the same turn of the event loop come along.
      if (!this.#underWay) setImmediate(() => this.#begin(batch))
      else setTimeout(() => this.#begin(batch), patienceMs)
    }
    return this.#next.add(key)
  }

  async #begin(batch: Batch<Row, Key> | undefined): Promise<void> {
    if (!batch || this.#next !== batch) return
    this.#next = undefined
    this.#underWay = batch
    const answer = await this.#read(batch.keys).then(
      (rows) => () => batch.resolve(rows),
      (error) => () => batch.reject(error),
    )
    // The database goes on while we answer.
    if (this.#underWay === batch) {
      this.#underWay = undefined
      this.#begin(this.#next)
    }
    answer()
  }
}

/**
 * A read by key that many ask for. Those who wait together share a statement, which begins after they asked: what was
 * committed before is seen. In a transaction it is a statement of its own, but `withSharedReads`.
 *
 * In `text` each member of the key is a list (`:id::uuid[]`), and `place` says which of the keys a row belongs to, from
 * 1: `unnest(…) WITH ORDINALITY` counts so.
 */
export function keyedStatement<Row, Key extends KeyMembers<Key>>(
  name: string,
  text: string,
): KeyedStatement<Row, Key> {
  const several = statement<Row & { place: number }, Record<string, unknown[]>>(name, text)
  const lines = new WeakMap<Queryable, Line<Row, Key>>()

  async function read(db: Queryable, keys: Key[]): Promise<(Row | undefined)[]> {
    const members = Object.keys(keys[0] as object) as (keyof Key & string)[]
    const lists = Object.fromEntries(members.map((member) => [member, keys.map((key) => key[member])]))
    const found = new Array<Row | undefined>(keys.length)
    for (const row of await several.all(db, lists)) found[row.place - 1] = row
    return found
  }

  return {
    async one(db, key) {
      if (!db.isShared) return (await read(db, [key]))[0]
      let line = lines.get(db)
      if (!line) {
        line = new Line((keys) => read(db, keys))
        lines.set(db, line)
      }
      return line.add(key)
    },
  }
}

/** The transaction, where those who wait together share a statement as well. */
export const withSharedReads = (tx: Queryable): Queryable => ({
  isShared: true,
  query: (config) => tx.query(config),
})

/** The same for reads of any form: those who wait together and ask the same share an answer. */
export function sharedRead<Question, Answer>(
  find: (db: Queryable, question: Question) => Promise<Answer>,
): (db: Queryable, question: Question) => Promise<Answer> {
  const asked = new WeakMap<Queryable, Map<string, Line<Answer, { name: string }>>>()
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
      line = new Line(async () => [await find(db, question)])
      lines.set(name, line)
    }
    try {
      return (await line.add({ name })) as Answer
    } finally {
      if (line.isIdle) lines.delete(name)
    }
  }
}
