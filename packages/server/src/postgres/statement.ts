import type { Queryable } from './queryable.ts'

/** A named (prepared) statement. One without parameters takes none. */
export interface Statement<Row, Params> {
  all(db: Queryable, params: Params): Promise<Row[]>
  /** The first row, if any. */
  one(db: Queryable, params: Params): Promise<Row | undefined>
  /** How many rows it touched. */
  run(db: Queryable, params: Params): Promise<number>
}

/** The text of every statement by its name, as PostgreSQL gets it. A connection keeps one plan for each name. */
export const statements = new Map<string, string>()

// A parameter is a colon before a letter; a cast (`::text`) is none, nor is the colon in a literal (`'HH24:MI:SS'`) or
// after the name of a member of JSON (`{"isOpen":true}`).
const parameter = /(?<![:\w"]):([a-z]\w*)/gi

const writing = new Set<string>()

/** Whether a statement changes rows. One without a name is taken for one that does. */
export const isWrite = ({ name }: { name?: string | undefined }): boolean =>
  name === undefined || writing.has(name)

/** `text` names its parameters (`:projectId`). They become `$1`, `$2`, … here, once, and not at each call. */
export function statement<Row = never, Params = void>(name: string, text: string): Statement<Row, Params> {
  const names = [...new Set(Array.from(text.matchAll(parameter), ([, param]) => param as keyof Params))]
  const compiled = text.replace(parameter, (_, param) => `$${names.indexOf(param) + 1}`)
  if (statements.has(name)) throw new Error(`two statements are called ${name}`)
  statements.set(name, compiled)
  if (/\b(INSERT INTO|(?<!FOR |KEY )UPDATE \w+|DELETE FROM)\b/.test(text)) writing.add(name)
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

/** A condition, or one for each value where the value itself has to stand in the text for an index to fit. */
type Filter = string | Record<string, string>

/**
 * A list with filters that callers may leave out, as null. Each set of filters is a statement of its own, so that each
 * has a plan of its own and the index that fits it. This is for filters that an index serves; others stay in `text`, by
 * `ifGiven`. `text` takes the conditions of the filters given, each after an AND.
 */
export function filteredStatement<Row, Params>(
  name: string,
  text: (given: string) => string,
  filters: { [Param in keyof Params]?: Filter },
): Pick<Statement<Row, Params>, 'all'> {
  const entries = Object.entries(filters) as [keyof Params & string, Filter][]
  let ways = [{ suffix: '', given: '' }]
  for (const [param, filter] of entries) {
    const conditions = typeof filter === 'string' ? { '': filter } : filter
    const added = ways.flatMap(({ suffix, given }) =>
      Object.entries(conditions).map(([value, condition]) => ({
        suffix: suffix + suffixOf(param, value),
        given: `${given} AND ${condition}`,
      })),
    )
    ways = [...ways, ...added]
  }
  const byName = new Map(
    ways.map(({ suffix, given }) => [suffix, statement<Row, Params>(name + suffix, text(given))]),
  )
  const wayFor = (params: Params) =>
    entries
      .filter(([param]) => params[param] !== null)
      .map(([param, filter]) => suffixOf(param, typeof filter === 'string' ? '' : String(params[param])))
      .join('')
  return { all: (db, params) => byName.get(wayFor(params))!.all(db, params) }
}

const suffixOf = (param: string, value: string) => `_${param}${value && `_${value}`}`

/**
 * A condition of a list that callers may leave out, as null. Of `:x IS NULL OR …` PostgreSQL expects that next to no row
 * passes: for one page it would read and sort all that a project has. A CASE it takes for every other row; then it walks
 * the index that has the order, and stops when the page is full.
 */
export const ifGiven = (param: string, condition: string): string =>
  `CASE WHEN ${param} IS NULL THEN true ELSE ${condition} END`

/** The next page of a list that goes down by id; null begins it. Both are one bound, which an index finds. */
export const isBefore = (column: string) =>
  `${column} < coalesce(:beforeId::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')`
