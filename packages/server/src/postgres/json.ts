/**
 * Strings of at least this length are encoded once and sent separately from the headers. Encoding them for
 * each response would cost more than the extra write.
 */
const longText = 16_384

/** JSON text that is sent unchanged, most of it written by PostgreSQL. `T` is the type of its value. */
export class JsonText<T> {
  declare readonly holds: T
  readonly text: string
  #bytes: Buffer | undefined
  constructor(text: string) {
    this.text = text
  }

  /** A short string is sent together with the headers. A long one is encoded once for all responses. */
  get body(): string | Buffer {
    if (this.text.length < longText) return this.text
    this.#bytes ??= Buffer.from(this.text)
    return this.#bytes
  }

  toJSON(): T {
    return JSON.parse(this.text)
  }
}

export const jsonTextOf = (value: unknown): string =>
  value instanceof JsonText ? value.text : JSON.stringify(value)

/**
 * JSON as SQL: fixed text and expressions, joined by one `concat`, which looks up the output function of a
 * type once per statement. PostgreSQL's `json_build_object` looks it up for each value of each row, and takes
 * six times as long for a VM.
 */
export type Json = readonly ({ readonly fixed: string } | { readonly sql: string })[]

const fixed = (text: string) => ({ fixed: text })
const sql = (expression: string) => ({ sql: expression })

/**
 * Use this for every text column, because it is the only function here that escapes. NULL becomes an empty
 * string, also in the functions below.
 */
export const text = (expression: string): Json => [sql(`to_json(coalesce(${expression}, ''::text))`)]
/** For ids, addresses and other types that need no escaping. */
export const plain = (expression: string): Json => [fixed('"'), sql(expression), fixed('"')]
/** A time in JavaScript's format. */
export const time = (expression: string): Json =>
  plain(`to_char(${expression} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)
export const number = (expression: string): Json => [sql(expression)]
export const boolean = (expression: string): Json => [
  sql(`CASE WHEN ${expression} THEN 'true' ELSE 'false' END`),
]
/** For columns that are JSON, or are converted to JSON (`to_json(…)`). */
export const json = (expression: string): Json => [sql(`coalesce(${expression}::text, 'null')`)]
export const constant = (value: unknown): Json => [fixed(JSON.stringify(value))]

/** An object with every member of `T`, in this order. */
export const object = <T>(members: { readonly [Name in keyof T]-?: Json }): Json => [
  fixed('{'),
  ...Object.entries<Json>(members).flatMap(([name, value], index) => [
    fixed(`${index === 0 ? '' : ','}"${name}":`),
    ...value,
  ]),
  fixed('}'),
]

/** A list of items. `each` produces one item for each row. */
export const list = (...items: [Json, ...Json[]]): Json => [
  fixed('['),
  ...(items.length === 1 ? items[0] : [sql(`concat_ws(',', ${items.map(jsonSql).join(', ')})`)]),
  fixed(']'),
]
/** A list item for each row. `from` is the text that follows FROM. */
export const each = (item: Json, from: string, orderBy: string): Json => [
  sql(`(SELECT string_agg(${jsonSql(item)}, ',' ORDER BY ${orderBy}) FROM ${from})`),
]

/** PostgreSQL accepts at most 100 arguments of a function. */
const maxArguments = 100

/** Returns the SQL expression for the whole text. */
export function jsonSql(pieces: Json): string {
  const parts: string[] = []
  let waiting = ''
  const write = () => {
    if (waiting !== '') parts.push(`'${waiting.replaceAll("'", "''")}'`)
    waiting = ''
  }
  for (const piece of pieces)
    if ('fixed' in piece) waiting += piece.fixed
    else {
      write()
      parts.push(piece.sql)
    }
  write()
  return concat(parts)
}

function concat(parts: string[]): string {
  // Unlike `concat`, this keeps NULL, so that a list has no item if there is no row.
  if (parts.length === 1) return `(${parts[0]})::text`
  if (parts.length <= maxArguments) return `concat(${parts.join(', ')})`
  return `concat(${concat(parts.slice(0, maxArguments))}, ${concat(parts.slice(maxArguments))})`
}
