import { EventEmitter } from 'node:events'
import type pg from 'pg'
import { breakConnection, connectionOptions, sessionKeepAlive } from './connections.ts'
import { type DatabaseServers, PrimaryClient, serversOf } from './servers.ts'

/**
 * operations: an operation is due. ended: an operation ended. events: some events have no position yet.
 * stamped: events got positions. access: cached rights are out of date. capacity: a capacity request is due.
 * console: another session can now write to a VM's console.
 */
export type Topic = 'operations' | 'ended' | 'events' | 'stamped' | 'access' | 'capacity' | 'console'

const channel = 'slipway'
/**
 * NOTIFY serializes the commits of the transactions that use it, so it is sent on a separate connection, at
 * most once in this interval. A process also passes on received signals at most this often, so that its work
 * does not grow with the number of senders.
 */
const coalesceMs = 20
/** A notification may have 8,000 bytes; an id has 36. */
const subjectsPerNotice = 200
const reconnectMs = 500
/**
 * A listener only reads and would not notice a dead connection. So it sends a statement at this interval, and
 * expects a response before the next one.
 */
const heartbeatMs = 5_000
/** How long closing the connection may take. */
const closeMs = 1_000
const notify = { name: 'notify', text: 'SELECT pg_notify($1, notice) FROM unnest($2::text[]) notice' }

/** PostgreSQL truncates longer names. */
const maxNameBytes = 63

/**
 * Returns the connection name of a server that clients reach at `url`, which is '' for a process without
 * clients.
 */
export const connectionName = (url: string): string => `slipway-signals ${url}`.trim().slice(0, maxNameBytes)

/** The ids of a signal's subjects, such as the operations that ended; undefined means any subject. */
type Subjects = string[] | undefined
const subjectsOf = (subject: string | undefined): Subjects => (subject === undefined ? undefined : [subject])
/** `record` is the new record of the only subject, if this process already has it. */
type Listener = (subjects: Subjects, record?: string) => void

/**
 * Wakes the listeners of this process immediately, and those of other processes shortly after. Listeners also
 * poll, because a signal can be lost while the database is unavailable.
 */
export class Signals {
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  readonly #servers: DatabaseServers
  readonly #toSend = new PendingSignals()
  readonly #received = new PendingSignals()
  #client: pg.Client | undefined
  #sending: NodeJS.Timeout | undefined
  #pausing: NodeJS.Timeout | undefined
  #isClosed = false
  #servedUrl = ''
  #backendPid = 0

  constructor(url: string | DatabaseServers) {
    this.#servers = serversOf(url)
  }

  async open(): Promise<void> {
    const client = await this.#servers.connect(() => this.#newClient())
    sendHeartbeats(client)
    const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
    this.#backendPid = rows[0].pid
    await client.query(`LISTEN ${channel}`)
    this.#client = client
    // Signals sent while there was no connection were missed.
    for (const topic of this.#emitter.eventNames()) this.#emitter.emit(topic)
  }

  #newClient(): PrimaryClient {
    const client = new PrimaryClient({
      ...connectionOptions,
      servers: this.#servers,
      application_name: connectionName(this.#servedUrl),
      // A heartbeat may be sent while a notification is being sent.
      pipeline: true,
      options: sessionKeepAlive,
    })
    client.on('error', () => this.#reconnect(client))
    client.on('end', () => this.#reconnect(client))
    client.on('notification', ({ payload, processId }) => {
      if (processId !== this.#backendPid) this.#receive(payload ?? '')
    })
    return client
  }

  /** Publishes the URL at which clients reach this process, so that other processes on this database can see it. */
  async announce(url: string): Promise<void> {
    this.#servedUrl = url
    await this.#client?.query("SELECT set_config('application_name', $1, false)", [connectionName(url)])
  }

  /** Wakes all processes; only this one gets the record. */
  send(topic: Topic, subject?: string, record?: string): void {
    this.wake(topic, subject, record)
    this.#toSend.add(topic, subjectsOf(subject))
    this.#sending ??= setTimeout(() => this.#flush(), coalesceMs)
  }

  /** Wakes only this process. */
  wake(topic: Topic, subject?: string, record?: string): void {
    this.#emitter.emit(topic, subjectsOf(subject), record)
  }

  on(topic: Topic, listener: Listener): () => void {
    this.#emitter.on(topic, listener)
    return () => this.#emitter.off(topic, listener)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#sending)
    clearTimeout(this.#pausing)
    const client = this.#client
    if (!client) return
    const limit = setTimeout(
      () => breakConnection(client, 'PostgreSQL did not close the connection'),
      closeMs,
    )
    await client.end().catch(() => {})
    clearTimeout(limit)
  }

  /** Signals that arrive while a notification is being sent are included in the next one. */
  async #flush(): Promise<void> {
    const notices = this.#toSend.take().flatMap(([topic, subjects]) => noticesOf(topic, subjects))
    await this.#client?.query({ ...notify, values: [channel, notices] }).catch(() => {})
    const isMore = !this.#toSend.isEmpty && !this.#isClosed
    this.#sending = isMore ? setTimeout(() => this.#flush(), coalesceMs) : undefined
  }

  /** The first signal is passed on immediately; signals that follow shortly after are passed on together. */
  #receive(notice: string): void {
    const [topic = '', subjects = ''] = notice.split(' ')
    this.#received.add(topic as Topic, subjects === '' ? undefined : subjects.split(','))
    if (!this.#pausing) this.#passOn()
  }

  #passOn(): void {
    for (const [topic, subjects] of this.#received.take()) this.#emitter.emit(topic, subjects)
    this.#pausing = setTimeout(() => {
      this.#pausing = undefined
      if (!this.#received.isEmpty) this.#passOn()
    }, coalesceMs)
    this.#pausing.unref()
  }

  #reconnect(client: pg.Client): void {
    if (this.#isClosed || this.#client !== client) return
    this.#client = undefined
    const attempt = () => {
      if (this.#isClosed) return
      this.open().catch(() => setTimeout(attempt, reconnectMs))
    }
    // Keep this timer referenced: for a worker without connections, nothing else keeps the process alive.
    setTimeout(attempt, reconnectMs)
  }
}

/** Sends heartbeats. Breaks the connection if a heartbeat has no response when the next one is due. */
function sendHeartbeats(client: pg.Client): void {
  let hasResponse = true
  const timer = setInterval(() => {
    if (!hasResponse) return breakConnection(client, 'PostgreSQL did not respond to a heartbeat')
    hasResponse = false
    client.query('SELECT').then(
      () => {
        hasResponse = true
      },
      () => {},
    )
  }, heartbeatMs).unref()
  client.once('end', () => clearInterval(timer))
}

/** Signals that wait to be sent or passed on together: the subjects of each topic, or undefined for any subject. */
class PendingSignals {
  #topics = new Map<Topic, Set<string> | undefined>()

  get isEmpty(): boolean {
    return this.#topics.size === 0
  }

  add(topic: Topic, subjects: Subjects): void {
    const known = this.#topics.get(topic)
    if (!subjects || (!known && this.#topics.has(topic))) this.#topics.set(topic, undefined)
    else if (known) for (const subject of subjects) known.add(subject)
    else this.#topics.set(topic, new Set(subjects))
  }

  take(): [Topic, Subjects][] {
    const taken = this.#topics
    this.#topics = new Map()
    return [...taken].map(([topic, subjects]) => [topic, subjects && [...subjects]])
  }
}

function noticesOf(topic: Topic, subjects: Subjects): string[] {
  if (!subjects) return [topic]
  const notices: string[] = []
  for (let at = 0; at < subjects.length; at += subjectsPerNotice)
    notices.push(`${topic} ${subjects.slice(at, at + subjectsPerNotice).join(',')}`)
  return notices
}
