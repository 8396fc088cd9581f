import type { Writable } from 'node:stream'
import pg from 'pg'

/** How the rows of a statement are made: the name of each column, what reads its text, and a row with nothing in it. */
interface Shape {
  names: string[]
  parsers: ((text: string) => unknown)[]
  empty: Record<string, unknown>
}

/** A connection of the driver, as far as a statement needs it. */
interface Connection {
  parsedStatements: Record<string, string>
  submittedNamedStatements: Record<string, string>
  stream: Pick<Writable, 'cork' | 'uncork' | 'write'>
  parse(statement: { name: string; text: string }): void
  bind(portal: { statement: string; values: unknown[]; valueMapper: (value: unknown) => unknown }): void
  describe(what: { type: 'P'; name: string }): void
}

/** The driver has it, and its types do not. */
const { prepareValue } = (pg as unknown as { utils: { prepareValue: (value: unknown) => unknown } }).utils

const sync = Buffer.from('S\0\0\0\x04', 'latin1')
/** What follows the values, always the same: execute the portal without a name, to its end. */
const executeAndSync = Buffer.concat([Buffer.from('E\0\0\0\x09\0\0\0\0\0', 'latin1'), sync])

/** The rows of a prepared statement have one form for as long as its connection lives. */
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
 * each time, which for most of our statements is more than to read the row; this one asks once for each connection.
 */
export class Prepared {
  readonly name: string
  readonly text: string
  /** The driver calls it with an error or the result, and sets it where it is not given. */
  callback: ((error: Error | null, result?: unknown) => void) | undefined
  readonly #values
  readonly #rows: unknown[] = []
  #known!: Map<string, Shape>
  #shape: Shape | undefined
  #rowCount = 0
  #failure: Error | undefined

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
      stream.write(executeAndSync)
    } catch (error) {
      // A value that cannot be sent. What is on its way already has to come to its end.
      this.#failure = error as Error
      stream.write(sync)
    } finally {
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
    const { names, parsers, empty } = this.#shape!
    const row = { ...empty }
    try {
      for (let i = 0; i < fields.length; i++) {
        const text = fields[i]!
        if (text !== null) row[names[i]!] = parsers[i]!(text)
      }
    } catch (error) {
      this.#failure = error as Error
    }
    this.#rows.push(row)
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#known.set(this.name, this.#shape ?? { names: [], parsers: [], empty: {} })
    // `INSERT 0 1`, `SELECT 1`: the last word is the number of rows.
    this.#rowCount = Number(text.slice(text.lastIndexOf(' ') + 1)) || 0
  }

  handleError(error: Error): void {
    this.callback?.(error)
  }

  handleReadyForQuery(): void {
    if (this.#failure) this.callback?.(this.#failure)
    else this.callback?.(null, { rows: this.#rows, rowCount: this.#rowCount })
  }

  handleEmptyQuery(): void {}
}

// In a pipeline the driver lets nothing else through: it fears for cursors, which this is not.
Object.setPrototypeOf(Prepared.prototype, pg.Query.prototype)

/** What the driver is given for a statement: those with a name are prepared. */
export const queryOf = (config: pg.QueryConfig) =>
  config.name === undefined
    ? config
    : (new Prepared(config.name, config.text, config.values) as unknown as pg.QueryConfig)

/** The same as a promise, on one connection. */
export function ask(client: pg.PoolClient, config: pg.QueryConfig): Promise<pg.QueryResult> {
  return new Promise<pg.QueryResult>((resolve, reject) => {
    client.query(queryOf(config), (error: Error | null, result) => (error ? reject(error) : resolve(result)))
  }).catch((error) => {
    // Whose statement it was says more than where its answer was read.
    Error.captureStackTrace(error)
    throw error
  })
}
