/** One answer for all who ask within a while: it is computed again only when it is older, and by one of them. */
export class SharedAnswer<T> {
  readonly #find: () => Promise<T>
  readonly #maxAgeMs: number
  #answer: Promise<T> | undefined
  #until = 0

  constructor(find: () => Promise<T>, maxAgeMs: number) {
    this.#find = find
    this.#maxAgeMs = maxAgeMs
  }

  get(): Promise<T> {
    if (this.#answer && performance.now() < this.#until) return this.#answer
    const answer = this.#find()
    this.#answer = answer
    this.#until = performance.now() + this.#maxAgeMs
    answer.catch(() => {
      if (this.#answer === answer) this.#answer = undefined
    })
    return answer
  }
}
