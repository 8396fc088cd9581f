import { setTimeout as delay } from 'node:timers/promises'

/** The tasks that a part of the process does again and again until it is told to stop. */
export class PeriodicTasks {
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>[] = []
  readonly #onError: (error: unknown) => void

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** Aborts when it is told to stop. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /**
   * At once and then about every `ms`, or `restFactor` times as long as it took, if that is longer. The pauses vary a
   * little, so that processes that began together do not all come at the same moments.
   */
  every(ms: number, action: () => unknown, restFactor = 0): void {
    this.#running.push(this.#loop(ms, action, restFactor))
  }

  /** Resolves when the last action has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#running)
  }

  async #loop(ms: number, action: () => unknown, restFactor: number): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const begun = performance.now()
      try {
        await action()
      } catch (error) {
        if (!signal.aborted) this.#onError(error)
      }
      const pauseMs = Math.max(ms, (performance.now() - begun) * restFactor) * (0.75 + Math.random() / 2)
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}
