import type { Socket } from 'node:net'
import type pg from 'pg'

/** How long PostgreSQL may take to accept a connection. */
const connectMs = 8_000

/**
 * Settings of every connection. Keep-alive detects a lost peer while the connection is idle. This process
 * notices within 20 seconds, and PostgreSQL within a minute.
 */
export const connectionOptions = {
  connectionTimeoutMillis: connectMs,
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000,
} satisfies pg.ClientConfig

export const sessionKeepAlive =
  '-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3'

/** The parts of the driver's client that its type declarations lack. */
interface DriverClient {
  /** False while a response from PostgreSQL is expected. */
  readyForQuery: boolean
  connection: { stream: Socket }
}

/** Breaks the connection immediately. Its statements fail as if the database were unavailable. */
export function breakConnection(client: pg.ClientBase, reason: string): void {
  const error = Object.assign(new Error(reason), { code: 'ETIMEDOUT' })
  ;(client as unknown as DriverClient).connection.stream.destroy(error)
}

/** How many checks are made before the limit is reached. More checks make the limit more precise. */
const checksPerLimit = 20

interface SilenceCounts {
  bytesRead: number
  /** The number of consecutive checks in which nothing was received. */
  silent: number
  /** The number of consecutive checks in which nothing was received although a response was expected. */
  waiting: number
}

/**
 * Breaks connections on which a response is overdue. PostgreSQL ends statements itself before that, so either
 * PostgreSQL or the network has stopped without closing the connection. One timer checks all connections, so
 * that a single statement has no extra cost. The class counts checks instead of measuring time: if the
 * process was suspended, every response would look overdue by elapsed time, although the response may have
 * arrived and not been read yet.
 */
export class ResponseWatch {
  readonly #limitMs: number
  readonly #watched = new Map<pg.ClientBase, SilenceCounts>()
  #timer: NodeJS.Timeout | undefined

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  add(client: pg.ClientBase): void {
    this.#watched.set(client, { bytesRead: 0, silent: 0, waiting: 0 })
    this.#timer ??= setInterval(() => this.#check(), this.#limitMs / checksPerLimit).unref()
  }

  remove(client: pg.ClientBase): void {
    this.#watched.delete(client)
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #check(): void {
    let isOverdue = false
    for (const [client, watched] of this.#watched) {
      count(client as unknown as DriverClient, watched)
      isOverdue ||= watched.waiting >= checksPerLimit
    }
    if (!isOverdue) return
    // Other connections that have been silent for this long are probably dead as well, and the next request
    // would also have to wait.
    for (const [client, { silent }] of this.#watched)
      if (silent >= checksPerLimit)
        breakConnection(client, `PostgreSQL did not respond within ${this.#limitMs / 1_000} s`)
  }
}

function count({ readyForQuery, connection: { stream } }: DriverClient, watched: SilenceCounts): void {
  const isSilent = stream.bytesRead === watched.bytesRead
  watched.bytesRead = stream.bytesRead
  watched.silent = isSilent ? watched.silent + 1 : 0
  // A connection that is being closed waits for the peer to close it too.
  const isWaiting = isSilent && (!readyForQuery || stream.writableEnded)
  watched.waiting = isWaiting ? watched.waiting + 1 : 0
}
