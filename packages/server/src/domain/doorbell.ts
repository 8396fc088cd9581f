/** Runs `work` when rung, one run at a time. A ring during a run is not lost: another run follows it. */
export class Doorbell {
  readonly #work: () => Promise<boolean | undefined>
  #isRung = false
  #running: Promise<void> | undefined

  /** `work` answers whether there may be more to do at once. */
  constructor(work: () => Promise<boolean | undefined>) {
    this.#work = work
  }

  /** Resolves when there is nothing left to do; rejects if `work` does. */
  ring(): Promise<void> {
    this.#isRung = true
    this.#running ??= this.#run()
    return this.#running
  }

  async #run(): Promise<void> {
    try {
      while (this.#isRung) {
        this.#isRung = false
        if (await this.#work()) this.#isRung = true
      }
    } finally {
      // In the turn that found nothing more to do: a ring after it begins anew.
      this.#running = undefined
    }
  }
}
