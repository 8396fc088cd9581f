import type { IncusContext } from './context.ts'

/** Enough time to copy the largest disk. */
const maxMs = 6 * 3600 * 1000

type State = 'none' | 'running' | 'done'

/**
 * Runs work in Incus that may take longer than an engine call. The key is the id of the disk or copy that the
 * work creates. If the work fails, the next call of `state` throws the error; later calls return `none`.
 */
export class BackgroundWork {
  readonly #ctx: IncusContext
  readonly #closing = new AbortController()
  readonly #work = new Map<string, { state: State; error?: unknown }>()

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  begin(id: string, run: (limits: { signal: AbortSignal; operationMs: number }) => Promise<void>): void {
    const entry: { state: State; error?: unknown } = { state: 'running' }
    this.#work.set(id, entry)
    run({ signal: this.#closing.signal, operationMs: maxMs }).then(
      () => {
        entry.state = 'done'
      },
      (error) => {
        entry.state = 'none'
        entry.error = error
      },
    )
  }

  /** The state of work that this process started. */
  state(id: string): State {
    const entry = this.#work.get(id)
    if (!entry) return 'none'
    if (entry.state === 'none') {
      this.#work.delete(id)
      throw entry.error
    }
    return entry.state
  }

  forget(id: string): void {
    this.#work.delete(id)
  }

  /**
   * Returns whether Incus is working on an object with this name, even if another process started the work.
   */
  async isRunning(name: string, signal: AbortSignal): Promise<boolean> {
    const query = { recursion: '1' }
    const all = await this.#ctx.client.get<Record<string, unknown[]>>('/1.0/operations', { signal, query })
    return (all.running ?? []).some((operation) => JSON.stringify(operation).includes(name))
  }

  close(): void {
    this.#closing.abort()
  }
}
