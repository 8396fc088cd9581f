/** A value that is already known, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>

/** Calls `next` with the value: immediately if it is known, otherwise when it resolves. */
export const chain = <T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> =>
  value instanceof Promise ? value.then(next) : next(value)

/** How long a revoked credential or a lost role can still work if the signal about it is lost. */
const cacheMs = 500
const maxCached = 20_000

/** Caches the results of `find`, each for half a second. Calls for the same key share one lookup. */
export class ShortCache<T> {
  readonly #find: (key: string) => Promise<T>
  readonly #entries = new Map<string, { value: MaybePromise<T>; until: number }>()

  constructor(find: (key: string) => Promise<T>) {
    this.#find = find
  }

  /** Returns the value if it is cached and resolved, without a lookup. */
  peek(key: string): T | undefined {
    const entry = this.#entries.get(key)
    return entry && !(entry.value instanceof Promise) && entry.until > performance.now()
      ? entry.value
      : undefined
  }

  get(key: string): MaybePromise<T> {
    const known = this.#entries.get(key)
    if (known && known.until > performance.now()) return known.value
    if (this.#entries.size >= maxCached) this.#entries.clear()
    const value = this.#find(key)
    const entry: { value: MaybePromise<T>; until: number } = { value, until: performance.now() + cacheMs }
    this.#entries.set(key, entry)
    value.then(
      (found) => {
        entry.value = found
      },
      () => this.#entries.delete(key),
    )
    return value
  }

  clear(): void {
    this.#entries.clear()
  }
}

/** The most recently added keys. At the limit, the oldest key is removed. */
export class RecentKeys {
  readonly #keys = new Set<string>()

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  add(key: string): void {
    this.#keys.delete(key)
    if (this.#keys.size >= maxCached) this.#keys.delete(this.#keys.values().next().value!)
    this.#keys.add(key)
  }
}
