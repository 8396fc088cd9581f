import type { Writable } from 'node:stream'
import pg from 'pg'

/**
 * How the rows of a statement are built: the name of each column, and the function that parses its text.
 * Custom parsers are registered before the first call (`database.ts`).
 */
interface Shape {
  names: string[]
  parsers: ((text: string) => unknown)[]
  empty: Record<string, unknown>
}

const withoutRows: Shape = { names: [], parsers: [], empty: {} }

/** The parts of the driver's connection that a statement needs. */
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

export type QueryResult = Pick<pg.QueryResult, 'rows' | 'rowCount'>

/** The driver exports this function, but its type declarations lack it. */
const { prepareValue } = (pg as unknown as { utils: { prepareValue: (value: unknown) => unknown } }).utils

/**
 * The shapes of each connection's prepared statements, by the name of the statement. A shape stays valid until the
 * connection ends, because PostgreSQL rejects a call if the columns have changed.
 */
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
 * One call of a named statement. The driver's own class requests a description of the columns with each call
 * and looks up their parsers again. For most statements, that costs more than reading the row. This class
 * requests the description only until a call has succeeded on the connection.
 */
class PreparedQuery {
  readonly name: string
  readonly text: string
  /** Set by the driver. */
  callback: ((error: Error | null, result?: QueryResult) => void) | undefined
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
    if (prepared !== undefined && prepared !== text) return new Error(`two statements have the name ${name}`)
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

// In pipeline mode the driver accepts only instances of its own `Query` class, in order to reject cursors.
Object.setPrototypeOf(PreparedQuery.prototype, pg.Query.prototype)

/** Returns the query object for the driver. Statements with a name are prepared. */
export const queryOf = (config: pg.QueryConfig): pg.QueryConfig =>
  config.name === undefined
    ? config
    : (new PreparedQuery(config.name, config.text, config.values) as unknown as pg.QueryConfig)

/** Sends a statement on one connection and returns a promise. */
export function sendStatement(client: pg.PoolClient, config: pg.QueryConfig): Promise<QueryResult> {
  return new Promise<QueryResult>((resolve, reject) => {
    client.query(queryOf(config), (error: Error | null, result) => (error ? reject(error) : resolve(result)))
  }).catch((error) => {
    // The caller's stack is more useful than the stack of the code that reads the response.
    Error.captureStackTrace(error)
    throw error
  })
}
