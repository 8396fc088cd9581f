/**
 * Runs tasks with the same key one after another, within this process, and tasks with different keys
 * concurrently.
 */
export class InOrder {
  readonly #last = new Map<string, Promise<unknown>>()

  do<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const own = before.catch(() => {}).then(work)
    this.#last.set(key, own)
    return own.finally(() => this.#last.get(key) === own && this.#last.delete(key))
  }
}
