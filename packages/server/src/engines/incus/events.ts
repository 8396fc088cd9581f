import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'undici'
import type { IncusClient } from './client.ts'

const reconnectMs = 1_000

interface LifecycleEvent {
  type: string
  project: string
  metadata: { action?: string; name?: string; source?: string }
}

/**
 * Follows what happens to instances, as a hint: events that nobody heard are not sent again, so after every gap
 * `onGap` says that anything may have changed, when events are heard again.
 */
export class IncusEvents {
  readonly #client: IncusClient
  readonly #stopping = new AbortController()
  readonly #onInstance: (name: string) => void
  readonly #onGap: () => void
  #socket: WebSocket | undefined
  #hasHeard = false
  #ended: Promise<void>

  constructor(client: IncusClient, onInstance: (name: string) => void, onGap: () => void) {
    this.#client = client
    this.#onInstance = onInstance
    this.#onGap = onGap
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
      const { endpoint } = this.#client
      const wasOpen = await this.#follow()
      if (signal.aborted) return
      if (!wasOpen) this.#client.turnFrom(endpoint)
      await sleep(reconnectMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  /** Until the connection ends. Returns whether there was one. */
  #follow(): Promise<boolean> {
    const { origin, dispatcher } = this.#client.endpoint
    const url = `${origin.replace(/^http/, 'ws')}/1.0/events?type=lifecycle&all-projects=true`
    return new Promise((resolve) => {
      let isOpen = false
      const socket = new WebSocket(url, { dispatcher })
      this.#socket = socket
      socket.addEventListener('open', () => {
        isOpen = true
        if (this.#hasHeard) this.#onGap()
        this.#hasHeard = true
      })
      socket.addEventListener('message', ({ data }) => this.#hear(String(data)))
      socket.addEventListener('error', () => {})
      socket.addEventListener('close', () => resolve(isOpen))
      if (this.#stopping.signal.aborted) socket.close()
    })
  }

  #hear(text: string): void {
    const event = JSON.parse(text) as LifecycleEvent
    const source = /^\/1\.0\/instances\/([^/?]+)/.exec(event.metadata?.source ?? '')
    if (source) this.#onInstance(source[1]!)
  }
}
