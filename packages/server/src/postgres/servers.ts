import pg from 'pg'

/** The options of the driver's clients, with the servers instead of one connection string. */
type PrimaryOptions = Omit<pg.ClientConfig, 'connectionString'> & { servers: DatabaseServers }

/** PostgreSQL's error code for a write to a read-only server. */
const readOnly = '25006'

/**
 * The servers of one database, one of which is the primary. New connections use the server that worked last.
 * If it fails or is read-only, the next connection tries the next server. After the last server, it tries the
 * first one again.
 */
export class DatabaseServers {
  readonly #urls: readonly string[]
  #index = 0

  constructor(urls: string | readonly string[]) {
    this.#urls = typeof urls === 'string' ? [urls] : urls
  }

  get count(): number {
    return this.#urls.length
  }

  /** The server that new connections use. */
  get url(): string {
    return this.#urls[this.#index]!
  }

  /**
   * Moves on to the next server. If several connections to the same server fail, only the first call has an
   * effect.
   */
  skip(url: string): void {
    if (url === this.url) this.#index = (this.#index + 1) % this.#urls.length
  }

  /** Tries each server once. */
  async connect(makeClient: () => PrimaryClient): Promise<PrimaryClient> {
    for (let tried = 1; ; tried++) {
      const client = makeClient()
      try {
        await client.connect()
        return client
      } catch (error) {
        if (tried >= this.count) throw error
      }
    }
  }
}

export const serversOf = (url: string | readonly string[] | DatabaseServers): DatabaseServers =>
  url instanceof DatabaseServers ? url : new DatabaseServers(url)

/**
 * A connection to the primary. If there is only one server, the check is skipped: there is no alternative,
 * and requests that only read still work.
 */
export class PrimaryClient extends pg.Client {
  readonly #servers: DatabaseServers
  readonly #url: string

  constructor({ servers, ...options }: PrimaryOptions) {
    super({ ...options, connectionString: servers.url })
    // If a connection breaks, the running statement fails and the client emits an error event. Without a
    // listener, that event would end the process. A connection can break before the pool has added its own
    // listener.
    this.on('error', () => {})
    this.#servers = servers
    this.#url = servers.url
  }

  override connect(): Promise<pg.Client>
  override connect(callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void)): void
  override connect(callback?: (error: never, client: pg.Client) => void): Promise<pg.Client> | undefined {
    const connected = this.#connect()
    if (!callback) return connected
    const done = callback as (error: unknown, client?: pg.Client) => void
    connected.then(() => done(null, this), done)
    return undefined
  }

  async #connect(): Promise<pg.Client> {
    try {
      await super.connect()
      if (this.#servers.count > 1) await this.#requirePrimary()
      return this
    } catch (error) {
      this.#servers.skip(this.#url)
      throw error
    }
  }

  async #requirePrimary(): Promise<void> {
    const { rows } = await this.query('SHOW transaction_read_only')
    if (rows[0].transaction_read_only === 'off') return
    await this.end()
    throw Object.assign(new Error(`${this.host}:${this.port} is not the primary of the database`), {
      code: readOnly,
    })
  }
}
