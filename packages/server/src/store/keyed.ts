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

  async run(read: (keys: Key[]) => Promise<(Row | undefined)[]>): Promise<void> {
    try {
      const rows = await read(this.keys)
      for (const [index, { resolve }] of this.#waiting.entries()) resolve(rows[index])
    } catch (error) {
      for (const { reject } of this.#waiting) reject(error)
    }
  }
}

/**
 * A read by key that many ask for. Those that ask in one turn of the event loop share a statement, which begins after
 * they asked: what was committed before is seen. In a transaction it is a statement of its own.
 *
 * In `text` each member of the key is a list (`:id::uuid[]`), and `place` says which of the keys a row belongs to, from
 * 1: `unnest(…) WITH ORDINALITY` counts so.
 */
export function keyedStatement<Row, Key extends KeyMembers<Key>>(
  name: string,
  text: string,
): KeyedStatement<Row, Key> {
  const several = statement<Row & { place: number }, Record<string, unknown[]>>(name, text)
  const batches = new WeakMap<Queryable, Batch<Row, Key>>()

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
      let batch = batches.get(db)
      if (!batch) {
        const begun = new Batch<Row, Key>()
        batch = begun
        batches.set(db, begun)
        setImmediate(() => {
          batches.delete(db)
          begun.run((keys) => read(db, keys))
        })
      }
      return batch.add(key)
    },
  }
}

/**
 * The same for reads of any form: those who ask the same in one turn of the event loop share an answer, which is looked
 * for after they asked.
 */
export function sharedRead<Question, Answer>(
  find: (db: Queryable, question: Question) => Promise<Answer>,
): (db: Queryable, question: Question) => Promise<Answer> {
  const turns = new WeakMap<Queryable, Map<string, Promise<Answer>>>()
  return (db, question) => {
    if (!db.isShared) return find(db, question)
    let asked = turns.get(db)
    if (!asked) {
      asked = new Map()
      turns.set(db, asked)
      setImmediate(() => turns.delete(db))
    }
    const name = JSON.stringify(question)
    const known = asked.get(name)
    if (known) return known
    const answer = new Promise<Answer>((resolve) => setImmediate(() => resolve(find(db, question))))
    asked.set(name, answer)
    return answer
  }
}
