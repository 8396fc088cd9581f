import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { freePort } from './port.ts'

interface Cut {
  marker: string
  isDone: boolean
}

/** A TCP proxy to a database that can be cut, stalled and restored. */
export class Wire {
  readonly #databaseUrl: URL
  readonly #sockets = new Set<Socket>()
  readonly #silent = new WeakSet<Socket>()
  readonly #server = createServer((near) => this.#join(near))
  #isStalled = false
  #cut: Cut | undefined
  #port = 0

  constructor(databaseUrl: string) {
    this.#databaseUrl = new URL(databaseUrl)
  }

  /** URL of the database through this proxy; it does not change when the proxy is restored. */
  get url(): string {
    const { username, password, pathname } = this.#databaseUrl
    return `postgresql://${username}:${password}@127.0.0.1:${this.#port}${pathname}`
  }

  /** Starts the proxy, or starts it again after `cut`. */
  async restore(): Promise<void> {
    if (this.#server.listening) return
    this.#port ||= await freePort()
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  /** Ends every connection and refuses new ones. */
  cut(): Promise<void> {
    if (!this.#server.listening) return Promise.resolve()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.drop()
    return closed
  }

  /** Ends every connection; new ones are accepted. */
  drop(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /**
   * Ends the connection that sends the marker at its next commit: before the commit reaches the database, or,
   * if `isDone`, after it succeeded and before the client gets the response.
   */
  cutAtCommitOf(marker: string, isDone: boolean): void {
    this.#cut = { marker, isDone }
  }

  /** Holds back all data without closing the connections. */
  stall(): void {
    this.#isStalled = true
    for (const socket of this.#sockets) socket.pause()
  }

  /**
   * Makes existing connections stay open without data, as if the peer had lost power. New connections work.
   */
  silence(): void {
    this.#isStalled = false
    for (const socket of this.#sockets) {
      socket.pause()
      socket.removeAllListeners('data')
      this.#silent.add(socket)
    }
  }

  /** Delivers the held data, except on connections that were silenced. */
  flow(): void {
    this.#isStalled = false
    for (const socket of this.#sockets) if (!this.#silent.has(socket)) socket.resume()
  }

  #join(near: Socket): void {
    const far = connect(join(decodeURIComponent(this.#databaseUrl.hostname), '.s.PGSQL.5432'))
    let cut: Cut | undefined
    const isCutBy = (socket: Socket, bytes: Buffer) => {
      if (socket === near && this.#cut && bytes.includes(this.#cut.marker)) {
        cut = this.#cut
        this.#cut = undefined
      }
      return cut !== undefined && (socket === far) === cut.isDone && bytes.includes('COMMIT\0')
    }
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
      socket.on('data', (bytes) => (isCutBy(socket, bytes) ? socket.destroy() : other.write(bytes)))
      if (this.#isStalled) socket.pause()
    }
  }
}
