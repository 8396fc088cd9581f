import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'

/** The way to a database by TCP, which can be cut, stalled and mended. */
export class Wire {
  readonly #databaseUrl: URL
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((near) => this.#join(near))
  #isStalled = false
  #port = 0

  constructor(databaseUrl: string) {
    this.#databaseUrl = new URL(databaseUrl)
  }

  /** The same database through this wire; it stays the same from one mending to the next. */
  get url(): string {
    const { username, password, pathname } = this.#databaseUrl
    return `postgresql://${username}:${password}@127.0.0.1:${this.#port}${pathname}`
  }

  mend(): Promise<void> {
    if (this.#server.listening) return Promise.resolve()
    return new Promise((resolve) => {
      this.#server.listen(this.#port, '127.0.0.1', () => {
        this.#port = (this.#server.address() as { port: number }).port
        resolve()
      })
    })
  }

  /** Ends every connection and refuses new ones. */
  cut(): Promise<void> {
    if (!this.#server.listening) return Promise.resolve()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.drop()
    return closed
  }

  /** Ends every connection; new ones are welcome. */
  drop(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Nothing comes through, and nobody is told. */
  stall(): void {
    this.#isStalled = true
    for (const socket of this.#sockets) socket.pause()
  }

  /** What was held back arrives now. */
  flow(): void {
    this.#isStalled = false
    for (const socket of this.#sockets) socket.resume()
  }

  #join(near: Socket): void {
    const far = connect(join(decodeURIComponent(this.#databaseUrl.hostname), '.s.PGSQL.5432'))
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
      socket.on('data', (bytes) => other.write(bytes))
      if (this.#isStalled) socket.pause()
    }
  }
}
