import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'undici'
import type { IncusClient } from './client.ts'

const reconnectMs = 1_000
const checkMs = 3_000

/**
 * Receives lifecycle events. `onInstance` is called for each event of an instance, with the member that sent
 * it; `onAny` is called for every event. Incus does not repeat missed events, so `onOpen` is called whenever
 * the connection opens, with `true` the first time.
 */
export class IncusEvents {
  readonly #client: IncusClient
  readonly #stopping = new AbortController()
  readonly #onInstance: (name: string, member: string) => void
  readonly #onOpen: (isFirst: boolean) => void
  readonly #onAny: () => void
  isOpen = false
  #socket: WebSocket | undefined
  #wasConnected = false
  #ended: Promise<void>

  constructor(
    client: IncusClient,
    onInstance: (name: string, member: string) => void,
    onOpen: (isFirst: boolean) => void,
    onAny: () => void = () => {},
  ) {
    this.#client = client
    this.#onInstance = onInstance
    this.#onOpen = onOpen
    this.#onAny = onAny
    this.#ended = this.#run()
  }

  async close(): Promise<void> {
    this.#stopping.abort()
    this.#socket?.close()
    await this.#ended
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const { connection } = this.#client
      const wasOpen = await this.#follow()
      if (signal.aborted) return
      if (!wasOpen) this.#client.avoid(connection)
      await sleep(reconnectMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  /** Returns when the connection ends. The result says whether it was ever open. */
  #follow(): Promise<boolean> {
    const followed = this.#client.connection
    const { origin, dispatcher } = followed
    const url = `${origin.replace(/^http/, 'ws')}/1.0/events?type=lifecycle&all-projects=true`
    return new Promise((resolve) => {
      let isOpen = false
      const socket = new WebSocket(url, { dispatcher })
      const end = () => {
        clearInterval(check)
        this.isOpen = false
        resolve(isOpen)
      }
      // A member that hangs does not close the connection. When requests to it get no response, the client uses
      // another member; this connection then moves to that member.
      const check = setInterval(() => {
        if (this.#client.connection === followed) return
        socket.close()
        end()
      }, checkMs)
      check.unref()
      this.#socket = socket
      socket.addEventListener('open', () => {
        isOpen = true
        this.isOpen = true
        this.#onOpen(!this.#wasConnected)
        this.#wasConnected = true
      })
      socket.addEventListener('message', ({ data }) => this.#receive(String(data)))
      socket.addEventListener('error', () => {})
      socket.addEventListener('close', end)
      if (this.#stopping.signal.aborted) socket.close()
    })
  }

  #receive(text: string): void {
    const { metadata, location = '' } = JSON.parse(text) as {
      metadata?: { source?: string }
      location?: string
    }
    this.#onAny()
    const source = /^\/1\.0\/instances\/([^/?]+)/.exec(metadata?.source ?? '')
    if (source) this.#onInstance(source[1]!, location)
  }
}
