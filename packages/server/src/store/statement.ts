import type { Queryable } from './database.ts'

/** A named (prepared) statement. One without parameters takes none. */
export interface Statement<Row, Params> {
  all(db: Queryable, params: Params): Promise<Row[]>
  /** The first row, if any. */
  one(db: Queryable, params: Params): Promise<Row | undefined>
  /** How many rows it touched. */
  run(db: Queryable, params: Params): Promise<number>
}

// A parameter is a colon before a letter; a cast (`::text`) is none, nor is the colon in a literal (`'HH24:MI:SS'`).
const parameter = /(?<![:\w]):([a-z]\w*)/gi

/** `text` names its parameters (`:projectId`). They become `$1`, `$2`, … here, once, and not at each call. */
export function statement<Row = never, Params = void>(name: string, text: string): Statement<Row, Params> {
  const names = [...new Set(Array.from(text.matchAll(parameter), ([, param]) => param as keyof Params))]
  const compiled = text.replace(parameter, (_, param) => `$${names.indexOf(param) + 1}`)
  const query = (db: Queryable, params: Params) => {
    const values = names.map((param) => {
      const value = params[param]
      // The driver would send NULL, so that a forgotten value would go unnoticed.
      if (value === undefined) throw new Error(`statement ${name}: no value for :${String(param)}`)
      return value
    })
    return db.query({ name, text: compiled, values })
  }
  return {
    all: async (db, params) => (await query(db, params)).rows,
    one: async (db, params) => (await query(db, params)).rows[0],
    run: async (db, params) => (await query(db, params)).rowCount ?? 0,
  }
}
