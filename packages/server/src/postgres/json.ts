/** From here on, making a text's bytes costs more than sending them apart. */
const longText = 16_384

/** JSON that is sent as it stands, most of it written by PostgreSQL. `T` is what it holds. */
export class JsonText<T> {
  declare readonly holds: T
  readonly text: string
  #bytes: Buffer | undefined
  constructor(text: string) {
    this.text = text
  }

  /** As it is sent. A short one goes out in one piece with its headers; of a long one the bytes are made once for all. */
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
 * JSON as SQL: pieces of text, each as it stands or what an expression gives. They end in one `concat`, which looks up
 * how to write a type once for a statement. PostgreSQL's own `json_build_object` does so for each value of each row,
 * and takes six times as long for a VM.
 */
export type Json = readonly ({ readonly fixed: string } | { readonly sql: string })[]

const fixed = (text: string) => ({ fixed: text })
const sql = (expression: string) => ({ sql: expression })

/** Every column of text is this, whatever it holds today: it alone escapes. NULL is an empty text, here as below. */
export const text = (expression: string): Json => [sql(`to_json(coalesce(${expression}, ''::text))`)]
/** For types whose text needs no escaping: ids and addresses. */
export const plain = (expression: string): Json => [fixed('"'), sql(expression), fixed('"')]
/** As JavaScript writes it. */
export const time = (expression: string): Json =>
  plain(`to_char(${expression} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)
export const number = (expression: string): Json => [sql(expression)]
export const boolean = (expression: string): Json => [
  sql(`CASE WHEN ${expression} THEN 'true' ELSE 'false' END`),
]
/** For columns that are JSON themselves, or become it (`to_json(…)`). */
export const json = (expression: string): Json => [sql(`coalesce(${expression}::text, 'null')`)]
export const constant = (value: unknown): Json => [fixed(JSON.stringify(value))]

/** Has every member of the record, in the order given: the compiler counts them. */
export const object = <T>(members: { readonly [Name in keyof T]-?: Json }): Json => [
  fixed('{'),
  ...Object.entries<Json>(members).flatMap(([name, value], index) => [
    fixed(`${index === 0 ? '' : ','}"${name}":`),
    ...value,
  ]),
  fixed('}'),
]

/** Items one after another; those of `each` are as many as there are rows. */
export const list = (...items: [Json, ...Json[]]): Json => [
  fixed('['),
  ...(items.length === 1 ? items[0] : [sql(`concat_ws(',', ${items.map(jsonSql).join(', ')})`)]),
  fixed(']'),
]
/** An item of a list for each row; `from` is what follows FROM. */
export const each = (item: Json, from: string, orderBy: string): Json => [
  sql(`(SELECT string_agg(${jsonSql(item)}, ',' ORDER BY ${orderBy}) FROM ${from})`),
]

/** PostgreSQL takes a hundred arguments at most. */
const mostArguments = 100

/** The SQL expression of the whole text. */
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
  // It stays NULL: no row, no item.
  if (parts.length === 1) return `(${parts[0]})::text`
  if (parts.length <= mostArguments) return `concat(${parts.join(', ')})`
  return `concat(${concat(parts.slice(0, mostArguments))}, ${concat(parts.slice(mostArguments))})`
}
