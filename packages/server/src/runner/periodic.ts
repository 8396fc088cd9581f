import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

/** The tasks that a part of the process does again and again until it is told to stop. */
export class PeriodicTasks {
  readonly #stopping = new AbortController()
  readonly #running = new Set<Promise<void>>()
  readonly #onError: (error: unknown) => void

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
    // Every task listens.
    setMaxListeners(0, this.#stopping.signal)
  }

  /** Aborts when it is told to stop. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /**
   * At once and then about every `ms`. The pauses vary a little, so that processes that began together do not all come
   * at the same moments.
   */
  every(ms: number, action: () => unknown): void {
    this.#run(this.#loop(ms, action))
  }

  /** Whenever what it subscribes to calls, but not while it is still at it. */
  upon(subscribe: (call: () => void) => () => void, action: () => unknown): void {
    let isRunning = false
    const unsubscribe = subscribe(() => {
      if (isRunning) return
      isRunning = true
      this.#run(
        this.#try(action).finally(() => {
          isRunning = false
        }),
      )
    })
    this.stopping.addEventListener('abort', unsubscribe)
  }

  /** Resolves when the last action has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#running)
  }

  #run(running: Promise<void>): void {
    this.#running.add(running)
    void running.finally(() => this.#running.delete(running))
  }

  async #try(action: () => unknown): Promise<void> {
    try {
      await action()
    } catch (error) {
      if (!this.stopping.aborted) this.#onError(error)
    }
  }

  async #loop(ms: number, action: () => unknown): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#try(action)
      const pauseMs = ms * (0.75 + Math.random() / 2)
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}
