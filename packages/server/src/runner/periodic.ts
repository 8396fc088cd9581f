import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { withJitter } from './backoff.ts'

/** The repeated tasks of one part of the process. */
export class PeriodicTasks {
  readonly #stopping = new AbortController()
  readonly #running = new Set<Promise<void>>()
  readonly #onError: (error: unknown) => void

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
    // Every task adds a listener, so Node's warning about listener leaks is disabled.
    setMaxListeners(0, this.#stopping.signal)
  }

  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** Runs the action immediately and then about every `ms`. */
  every(ms: number, action: () => unknown): void {
    this.#run(this.#loop(ms, action))
  }

  /**
   * Runs the action whenever the subscription calls, unless the action is still running. Ends when `until`
   * aborts.
   */
  runOn(
    subscribe: (call: () => void) => () => void,
    action: () => unknown,
    until: AbortSignal = this.stopping,
  ): void {
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
    until.addEventListener('abort', unsubscribe)
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
      await delay(withJitter(ms), undefined, { signal, ref: false }).catch(() => {})
    }
  }
}
