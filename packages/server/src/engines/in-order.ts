/** Work on one thing is done one after the other, in this process; work on different things at the same time. */
export class InOrder {
  readonly #last = new Map<string, Promise<unknown>>()

  do<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const own = before.catch(() => {}).then(work)
    this.#last.set(key, own)
    return own.finally(() => this.#last.get(key) === own && this.#last.delete(key))
  }
}
