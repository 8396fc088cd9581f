/** Does `work` when it is asked to, one run at a time. A request during a run is not lost: another run follows it. */
export class CoalescedTask {
  readonly #work: () => Promise<boolean | undefined>
  #isWanted = false
  #running: Promise<void> | undefined

  /** `work` returns whether there may be more to do at once. */
  constructor(work: () => Promise<boolean | undefined>) {
    this.#work = work
  }

  /** Resolves when there is nothing left to do; rejects if `work` does. */
  run(): Promise<void> {
    this.#isWanted = true
    this.#running ??= this.#loop()
    return this.#running
  }

  async #loop(): Promise<void> {
    try {
      while (this.#isWanted) {
        this.#isWanted = false
        if (await this.#work()) this.#isWanted = true
      }
    } finally {
      // In the turn that found nothing more to do: a request after it begins anew.
      this.#running = undefined
    }
  }
}
