/**
 * Runs `work` on request, one run at a time. A request during a run causes another run after it, unless `work`
 * rejects: then `run` rejects for these requests too, and the next run needs a new request.
 */
export class CoalescedTask {
  readonly #work: () => Promise<boolean | undefined>
  #isWanted = false
  #running: Promise<void> | undefined

  /** `work` returns whether it should run again immediately. */
  constructor(work: () => Promise<boolean | undefined>) {
    this.#work = work
  }

  /** Resolves when no more runs are requested; rejects if `work` does. */
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
      this.#running = undefined
    }
  }
}
