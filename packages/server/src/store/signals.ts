import { EventEmitter } from 'node:events'
import pg from 'pg'

/**
 * operations: something is due. ended: an operation ended. events: unstamped ones. stamped: new positions. access:
 * forget cached rights.
 */
export type Topic = 'operations' | 'ended' | 'events' | 'stamped' | 'access'

const channel = 'slipway'
/** NOTIFY in the hot transaction serialises commits; so often at most, on a connection of its own, it costs nothing. */
const coalesceMs = 20
const reconnectMs = 500

/**
 * Wakes the parts of one process at once, and other processes shortly after. These are only hints: whoever waits for
 * one also looks by itself now and then, since a hint can be lost while the database is away.
 */
export class Signals {
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  readonly #url: string
  readonly #pending = new Set<Topic>()
  #client: pg.Client | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #backendPid = 0

  constructor(url: string) {
    this.#url = url
  }

  async open(): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url, application_name: 'slipway-signals' })
    client.on('error', () => this.#reconnect(client))
    client.on('end', () => this.#reconnect(client))
    client.on('notification', ({ payload, processId }) => {
      if (processId === this.#backendPid) return
      for (const topic of (payload ?? '').split(',')) this.#emitter.emit(topic)
    })
    await client.connect()
    const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
    this.#backendPid = rows[0].pid
    await client.query(`LISTEN ${channel}`)
    this.#client = client
    // Whatever was said meanwhile was missed.
    for (const topic of this.#emitter.eventNames()) this.#emitter.emit(topic)
  }

  /** `subject` says what it is about; only this process hears that, others hear of the topic alone. */
  send(topic: Topic, subject?: string): void {
    this.#emitter.emit(topic, subject)
    this.#pending.add(topic)
    this.#timer ??= setTimeout(() => this.#flush(), coalesceMs)
  }

  on(topic: Topic, listener: (subject?: string) => void): () => void {
    this.#emitter.on(topic, listener)
    return () => this.#emitter.off(topic, listener)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#client?.end().catch(() => {})
  }

  /** What is sent while a notification is on its way goes with the next one. */
  async #flush(): Promise<void> {
    const payload = [...this.#pending].join(',')
    this.#pending.clear()
    await this.#client?.query('SELECT pg_notify($1, $2)', [channel, payload]).catch(() => {})
    const isMore = this.#pending.size > 0 && !this.#isClosed
    this.#timer = isMore ? setTimeout(() => this.#flush(), coalesceMs) : undefined
  }

  #reconnect(client: pg.Client): void {
    if (this.#isClosed || this.#client !== client) return
    this.#client = undefined
    const attempt = () => {
      if (this.#isClosed) return
      this.open().catch(() => setTimeout(attempt, reconnectMs).unref())
    }
    setTimeout(attempt, reconnectMs).unref()
  }
}
