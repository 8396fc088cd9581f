import { EventEmitter } from 'node:events'
import pg from 'pg'

/**
 * operations: something is due. ended: an operation ended. events: some without a position. stamped: new positions. access:
 * forget cached rights.
 */
export type Topic = 'operations' | 'ended' | 'events' | 'stamped' | 'access'

const channel = 'slipway'
/**
 * NOTIFY in the hot transaction serialises commits; so often at most, on a connection of its own, it costs nothing. A
 * process passes on what it hears as often at most, however many others speak: what it does upon hints does not grow
 * with their number.
 */
const coalesceMs = 20
/** A notification may have 8,000 bytes; an id has 36. */
const subjectsPerNotice = 200
const reconnectMs = 500
// Planned once: it has a name.
const notify = { name: 'notify', text: 'SELECT pg_notify($1, notice) FROM unnest($2::text[]) notice' }

/** PostgreSQL cuts off the rest of a longer name. */
const maxNameBytes = 63

/** The name of the connection of a server that clients reach at `url`, or of a process without clients: ''. */
export const connectionName = (url: string): string => `slipway-signals ${url}`.trim().slice(0, maxNameBytes)

/** What it is about, where the topic has ids (operations that ended); undefined: anything. */
type Subjects = string[] | undefined
const about = (subject: string | undefined): Subjects => (subject === undefined ? undefined : [subject])
/** `record`: what became of the one subject, where this process knows and nobody has to look. */
type Listener = (subjects: Subjects, record?: string) => void

/**
 * Wakes the parts of one process at once, and other processes shortly after. These are only hints: whoever waits for
 * one also looks by itself now and then, since a hint can be lost while the database is away.
 */
export class Signals {
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  readonly #url: string
  readonly #toSend = new Hints()
  readonly #heard = new Hints()
  #client: pg.Client | undefined
  #sending: NodeJS.Timeout | undefined
  #hearing: NodeJS.Timeout | undefined
  #isClosed = false
  #servedUrl = ''
  #backendPid = 0

  constructor(url: string) {
    this.#url = url
  }

  async open(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: connectionName(this.#servedUrl),
    })
    client.on('error', () => this.#reconnect(client))
    client.on('end', () => this.#reconnect(client))
    client.on('notification', ({ payload, processId }) => {
      if (processId !== this.#backendPid) this.#hear(payload ?? '')
    })
    await client.connect()
    const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
    this.#backendPid = rows[0].pid
    await client.query(`LISTEN ${channel}`)
    this.#client = client
    // Whatever was said meanwhile was missed.
    for (const topic of this.#emitter.eventNames()) this.#emitter.emit(topic)
  }

  /** Shows other processes on this database where clients reach this one, for as long as it runs. */
  async announce(url: string): Promise<void> {
    this.#servedUrl = url
    await this.#client?.query("SELECT set_config('application_name', $1, false)", [connectionName(url)])
  }

  /** To all processes; the record is for this one. */
  send(topic: Topic, subject?: string, record?: string): void {
    this.wake(topic, subject, record)
    this.#toSend.add(topic, about(subject))
    this.#sending ??= setTimeout(() => this.#flush(), coalesceMs)
  }

  /** To this process alone. */
  wake(topic: Topic, subject?: string, record?: string): void {
    this.#emitter.emit(topic, about(subject), record)
  }

  on(topic: Topic, listener: Listener): () => void {
    this.#emitter.on(topic, listener)
    return () => this.#emitter.off(topic, listener)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#sending)
    clearTimeout(this.#hearing)
    await this.#client?.end().catch(() => {})
  }

  /** What is sent while a notification is on its way goes with the next one. */
  async #flush(): Promise<void> {
    const notices = this.#toSend.take().flatMap(([topic, subjects]) => noticesOf(topic, subjects))
    await this.#client?.query({ ...notify, values: [channel, notices] }).catch(() => {})
    const isMore = !this.#toSend.isEmpty && !this.#isClosed
    this.#sending = isMore ? setTimeout(() => this.#flush(), coalesceMs) : undefined
  }

  /** The first hint is passed on at once; those that follow closely go together. */
  #hear(notice: string): void {
    const [topic = '', subjects = ''] = notice.split(' ')
    this.#heard.add(topic as Topic, subjects === '' ? undefined : subjects.split(','))
    if (!this.#hearing) this.#passOn()
  }

  #passOn(): void {
    for (const [topic, subjects] of this.#heard.take()) this.#emitter.emit(topic, subjects)
    this.#hearing = setTimeout(() => {
      this.#hearing = undefined
      if (!this.#heard.isEmpty) this.#passOn()
    }, coalesceMs)
    this.#hearing.unref()
  }

  #reconnect(client: pg.Client): void {
    if (this.#isClosed || this.#client !== client) return
    this.#client = undefined
    const attempt = () => {
      if (this.#isClosed) return
      this.open().catch(() => setTimeout(attempt, reconnectMs))
    }
    // Without its connections a worker has nothing else that keeps the process: this timer does.
    setTimeout(attempt, reconnectMs)
  }
}

/** Hints that are waiting to go together: of each topic what it is about, or undefined if about anything. */
class Hints {
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
