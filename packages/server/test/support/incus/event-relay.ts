import { createServer, connect as dial, type Server, type Socket } from 'node:net'

/** A proxy between a worker and its Incus socket. Calls pass; events are held back. */
export class EventRelay {
  readonly path: string
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** The worker's event connections, each with the events that were held back. */
  readonly #listeners = new Map<Socket, Buffer[]>()

  private constructor(path: string, target: string) {
    this.path = path
    this.#server = createServer((client) => this.#relay(client, target))
  }

  static async open(path: string, target: string): Promise<EventRelay> {
    const relay = new EventRelay(path, target)
    await new Promise<void>((resolve) => relay.#server.listen(path, resolve))
    return relay
  }

  get heldCount(): number {
    return [...this.#listeners.values()].reduce((sum, held) => sum + held.length, 0)
  }

  /** Delivers the events that were held back. */
  release(): void {
    for (const [client, held] of this.#listeners) for (const data of held.splice(0)) client.write(data)
  }

  /** Drops the events that were held back, and closes the connections. */
  drop(): void {
    for (const client of this.#listeners.keys()) client.destroy()
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #relay(client: Socket, target: string): void {
    const incus = dial(target)
    for (const socket of [client, incus]) this.#sockets.add(socket)
    let isGreeted = false
    client.on('data', (data) => {
      if (data.toString('latin1').startsWith('GET /1.0/events')) {
        this.#listeners.set(client, [])
        isGreeted = false
      }
      incus.write(data)
    })
    incus.on('data', (data) => {
      const held = this.#listeners.get(client)
      // The first data is the response to the request itself, on a connection that may have served other requests.
      if (held && isGreeted) held.push(data)
      else client.write(data)
      isGreeted = true
    })
    const end = () => {
      this.#listeners.delete(client)
      for (const socket of [client, incus]) {
        socket.destroy()
        this.#sockets.delete(socket)
      }
    }
    for (const socket of [client, incus]) socket.on('close', end).on('error', end)
  }
}
