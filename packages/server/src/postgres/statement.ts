import type { Queryable } from './queryable.ts'

/** Returns a function that runs the statement with all its named parameters, passed by position. */
type ByPosition<Params, Db, Result> = <const Names extends readonly (keyof Params)[]>(
  ...names: [keyof Params] extends [Names[number]] ? Names : never
) => (db: Db, ...values: { -readonly [Index in keyof Names]: Params[Names[Index]] }) => Promise<Result>

/** A named (prepared) statement. `Db` is `Tx` for a statement that needs a transaction. */
export interface Statement<Row, Params, Db = Queryable> {
  all(db: Db, params: Params): Promise<Row[]>
  /** Returns the first row, if any. */
  one(db: Db, params: Params): Promise<Row | undefined>
  /** Returns the number of rows that the statement changed or found. */
  run(db: Db, params: Params): Promise<number>
  allBy: ByPosition<Params, Db, Row[]>
  oneBy: ByPosition<Params, Db, Row | undefined>
  runBy: ByPosition<Params, Db, number>
}

/** The text of every statement by its name, as PostgreSQL receives it. A connection keeps one plan for each name. */
export const statements = new Map<string, string>()

// A parameter is a colon before a letter. Casts (`::text`), colons in literals (`'HH24:MI:SS'`) and colons after the name
// of a JSON member (`{"isOpen":true}`) are not parameters.
const parameter = /(?<![:\w"]):([a-z]\w*)/gi

const writing = new Set<string>()

/** Returns whether a statement changes rows. A statement without a name is assumed to change rows. */
export const isWrite = ({ name }: { name?: string | undefined }): boolean =>
  name === undefined || writing.has(name)

/**
 * `text` names its parameters (`:projectId`). They are replaced by `$1`, `$2`, … only once, not at each call.
 */
export function statement<Row = never, Params = void, Db extends Queryable = Queryable>(
  name: string,
  text: string,
): Statement<Row, Params, Db> {
  const names = [...new Set(Array.from(text.matchAll(parameter), ([, param]) => param as keyof Params))]
  const compiled = text.replace(parameter, (_, param) => `$${names.indexOf(param) + 1}`)
  if (statements.has(name)) throw new Error(`two statements have the name ${name}`)
  statements.set(name, compiled)
  if (/\b(INSERT INTO|(?<!FOR |KEY )UPDATE \w+|DELETE FROM)\b/.test(text)) writing.add(name)
  const query = (db: Db, params: Params) => {
    const values = names.map((param) => {
      const value = params[param]
      // Otherwise the driver would send NULL, and a missing value would go unnoticed.
      if (value === undefined) throw new Error(`statement ${name}: no value for :${String(param)}`)
      return value
    })
    return db.query({ name, text: compiled, values })
  }
  const all = async (db: Db, params: Params) => (await query(db, params)).rows
  const one = async (db: Db, params: Params) => (await query(db, params)).rows[0]
  const run = async (db: Db, params: Params) => (await query(db, params)).rowCount ?? 0
  const byPosition =
    <Result>(call: (db: Db, params: Params) => Promise<Result>): ByPosition<Params, Db, Result> =>
    (...given) =>
    (db, ...values) =>
      call(db, Object.fromEntries(given.map((param, index) => [param, values[index]])) as Params)
  return { all, one, run, allBy: byPosition(all), oneBy: byPosition(one), runBy: byPosition(run) }
}

/** Rows as one array per field, for a statement that reads them with `unnest(:id::uuid[], …)`. */
export type Columns<Row> = { [Member in keyof Row]: Row[Member][] }

export const columns = <Row, Member extends keyof Row>(rows: Row[], members: readonly Member[]) =>
  Object.fromEntries(members.map((member) => [member, rows.map((row) => row[member])])) as Columns<
    Pick<Row, Member>
  >

/**
 * A condition, or one condition per value if PostgreSQL uses an index only when the value is a literal in the
 * SQL.
 */
type Filter = string | Record<string, string>

/**
 * A list with optional filters, which are null if not given. Each combination of filters is a separate
 * statement, with its own plan and the right index. Use this for filters that have an index; put other
 * filters into `text`, with `ifGiven`. `text` gets the conditions of the given filters, each after an AND.
 */
export function filteredStatement<Row, Params>(
  name: string,
  text: (given: string) => string,
  filters: { [Param in keyof Params]?: Filter },
): Pick<Statement<Row, Params>, 'all'> {
  const entries = Object.entries(filters) as [keyof Params & string, Filter][]
  let variants = [{ suffix: '', given: '' }]
  for (const [param, filter] of entries) {
    const conditions = typeof filter === 'string' ? { '': filter } : filter
    const added = variants.flatMap(({ suffix, given }) =>
      Object.entries(conditions).map(([value, condition]) => ({
        suffix: suffix + suffixOf(param, value),
        given: `${given} AND ${condition}`,
      })),
    )
    variants = [...variants, ...added]
  }
  const byName = new Map(
    variants.map(({ suffix, given }) => [suffix, statement<Row, Params>(name + suffix, text(given))]),
  )
  const suffixFor = (params: Params) =>
    entries
      .filter(([param]) => params[param] !== null)
      .map(([param, filter]) => suffixOf(param, typeof filter === 'string' ? '' : String(params[param])))
      .join('')
  return { all: (db, params) => byName.get(suffixFor(params))!.all(db, params) }
}

const suffixOf = (param: string, value: string) => `_${param}${value && `_${value}`}`

/**
 * An optional condition of a list, for a parameter that may be null. PostgreSQL estimates that almost no row
 * satisfies `:x IS NULL OR …`, and would read and sort all rows of a project for one page. It estimates that
 * half of the rows satisfy a CASE, and then reads the index in list order until the page is full.
 */
export const ifGiven = (param: string, condition: string): string =>
  `CASE WHEN ${param} IS NULL THEN true ELSE ${condition} END`

/** The position of a page in a list, newest first. If `beforeId` is null, the page is the first one. */
export interface PageParams {
  beforeId: string | null
  limit: number
}

/** A page of records, which also ends when `bytes` is reached. */
export interface RecordPageParams extends PageParams {
  bytes: number
}

/**
 * A list of records that ends with the first record that exceeds `:bytes`, so that records that do not fit
 * into the page are not sent to this process. `columns` are the columns other than the record.
 */
export const untilPageIsFull = (columns: string, list: string): string =>
  `SELECT ${columns}, record FROM (
     SELECT *, sum(octet_length(record)) OVER (ROWS UNBOUNDED PRECEDING) - octet_length(record) AS bytes_before
     FROM (${list}) listed) sized
   WHERE bytes_before <= :bytes`

/**
 * The SQL condition for a page in a list in descending id order. It is a single bound, so that it can use an
 * index.
 */
export const isBefore = (column: string) =>
  `${column} < coalesce(:beforeId::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')`
