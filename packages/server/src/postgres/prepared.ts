import type { Writable } from 'node:stream'
import pg from 'pg'

/**
 * How the rows of a statement are made: the name of each column, and what reads its text. Types that are read in a way of
 * our own are set before the first call (`database.ts`).
 */
interface Shape {
  names: string[]
  parsers: ((text: string) => unknown)[]
  empty: Record<string, unknown>
}

const withoutRows: Shape = { names: [], parsers: [], empty: {} }

/** A connection of the driver, as far as a statement needs it. */
interface Connection {
  parsedStatements: Record<string, string>
  submittedNamedStatements: Record<string, string>
  stream: Pick<Writable, 'cork' | 'uncork'>
  parse(statement: { name: string; text: string }): void
  bind(portal: { statement: string; values: unknown[]; valueMapper: (value: unknown) => unknown }): void
  describe(what: { type: 'P'; name: string }): void
  execute(portal: { portal?: string }): void
  sync(): void
}

/** The result of a call. */
export type QueryResult = Pick<pg.QueryResult, 'rows' | 'rowCount'>

/** The driver has it, and its types do not. */
const { prepareValue } = (pg as unknown as { utils: { prepareValue: (value: unknown) => unknown } }).utils

/** The rows of a prepared statement keep their form for as long as its connection lives: PostgreSQL refuses the call else. */
const shapes = new WeakMap<Connection, Map<string, Shape>>()

function shapesOf(connection: Connection): Map<string, Shape> {
  let known = shapes.get(connection)
  if (!known) {
    known = new Map()
    shapes.set(connection, known)
  }
  return known
}

/**
 * One call of a named statement. The driver's own has PostgreSQL describe the rows at each call and makes their form anew
 * each time, which for most of our statements is more than to read the row. Here the first call that succeeds on a
 * connection is the last that is described.
 */
class Prepared {
  readonly name: string
  readonly text: string
  /** The driver sets this to the query that it serves. */
  callback: ((error: Error | null, answer?: QueryResult) => void) | undefined
  readonly #values: unknown[]
  readonly #rows: unknown[] = []
  #known!: Map<string, Shape>
  #shape: Shape | undefined
  #rowCount = 0
  #failure: unknown

  constructor(name: string, text: string, values: unknown[] = []) {
    this.name = name
    this.text = text
    this.#values = values
  }

  submit(connection: Connection): Error | null {
    const { name, text } = this
    const { parsedStatements, submittedNamedStatements, stream } = connection
    const prepared = parsedStatements[name] ?? submittedNamedStatements[name]
    if (prepared !== undefined && prepared !== text) return new Error(`two statements are called ${name}`)
    this.#known = shapesOf(connection)
    this.#shape = this.#known.get(name)
    stream.cork()
    try {
      if (prepared === undefined) {
        connection.parse({ name, text })
        submittedNamedStatements[name] = text
      }
      connection.bind({ statement: name, values: this.#values, valueMapper: prepareValue })
      if (!this.#shape) connection.describe({ type: 'P', name: '' })
      connection.execute({})
    } catch (error) {
      // A value cannot be sent. Statements that were already sent still finish.
      this.#failure = error
    } finally {
      connection.sync()
      stream.uncork()
    }
    return null
  }

  handleRowDescription({ fields }: { fields: { name: string; dataTypeID: number }[] }): void {
    this.#shape = {
      names: fields.map(({ name }) => name),
      parsers: fields.map(({ dataTypeID }) => pg.types.getTypeParser(dataTypeID)),
      empty: Object.fromEntries(fields.map(({ name }) => [name, null])),
    }
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    try {
      const { names, parsers, empty } = this.#shape!
      if (fields.length !== names.length)
        throw new Error(
          `statement ${this.name} returned a row with ${fields.length} columns, expected ${names.length}`,
        )
      const row = { ...empty }
      for (let i = 0; i < fields.length; i++) {
        const text = fields[i]!
        row[names[i]!] = text === null ? null : parsers[i]!(text)
      }
      this.#rows.push(row)
    } catch (error) {
      this.#failure = error
    }
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#known.set(this.name, this.#shape ?? withoutRows)
    // `INSERT 0 1`, `SELECT 1`: the last word is the number of rows.
    this.#rowCount = Number(text.slice(text.lastIndexOf(' ') + 1)) || 0
  }

  handleError(error: Error): void {
    this.callback?.(error)
  }

  handleReadyForQuery(): void {
    if (this.#failure) this.callback?.(this.#failure as Error)
    else this.callback?.(null, { rows: this.#rows, rowCount: this.#rowCount })
  }

  handleEmptyQuery(): void {}
}

// In a pipeline the driver lets nothing else through: it fears for cursors, which this is not.
Object.setPrototypeOf(Prepared.prototype, pg.Query.prototype)

/** What the driver is given for a statement: those with a name are prepared. */
export const queryOf = (config: pg.QueryConfig): pg.QueryConfig =>
  config.name === undefined
    ? config
    : (new Prepared(config.name, config.text, config.values) as unknown as pg.QueryConfig)

/** Sends a statement on one connection and returns a promise. */
export function ask(client: pg.PoolClient, config: pg.QueryConfig): Promise<QueryResult> {
  return new Promise<QueryResult>((resolve, reject) => {
    client.query(queryOf(config), (error: Error | null, answer) => (error ? reject(error) : resolve(answer)))
  }).catch((error) => {
    // The stack of the caller is more useful than that of the reader.
    Error.captureStackTrace(error)
    throw error
  })
}
