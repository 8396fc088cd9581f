import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

/** How long a task rests after it has worked: so many times as long as it took, but no longer than that. */
export interface Rest {
  factor: number
  longestMs: number
}

export const restAfter = (tookMs: number, everyMs: number, rest?: Rest): number =>
  rest ? Math.max(everyMs, Math.min(tookMs * rest.factor, rest.longestMs)) : everyMs

/** The tasks that a part of the process does again and again until it is told to stop. */
export class PeriodicTasks {
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>[] = []
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
   * At once and then about every `ms`, or after a longer rest. The pauses vary a little, so that processes that began
   * together do not all come at the same moments.
   */
  every(ms: number, action: () => unknown, rest?: Rest): void {
    this.#running.push(this.#loop(ms, action, rest))
  }

  /** Resolves when the last action has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#running)
  }

  async #loop(ms: number, action: () => unknown, rest?: Rest): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const begun = performance.now()
      try {
        await action()
      } catch (error) {
        if (!signal.aborted) this.#onError(error)
      }
      const pauseMs = restAfter(performance.now() - begun, ms, rest) * (0.75 + Math.random() / 2)
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}
