import { Batches, transactTogether } from '../postgres/batches.ts'
import type { Database, Tx } from '../postgres/database.ts'
import { type Outcome, type Step, Unmet, type Work } from './operation.ts'

/** The most operations in one transaction. */
const maxItems = 32

/** An operation that has reached a step with a shared transaction. */
export interface Sharer {
  work: Work
  /** Writes the outcome. */
  conclude(outcome: Outcome, tx: Tx): Promise<void>
}

/**
 * Runs steps whose transaction several operations share. If one of them fails, also by a lost lease, the transaction is rolled
 * back and each operation runs the step alone.
 */
export class SharedSteps {
  readonly #database: Database
  readonly #batches = new Map<Step, Batches<Sharer, void>>()

  constructor(database: Database) {
    this.#database = database
  }

  /** Resolves when the step's work and its outcome are committed. */
  take(step: Step, sharer: Sharer): Promise<void> {
    let batches = this.#batches.get(step)
    if (!batches) {
      batches = new Batches({ handle: (sharers, isAlone) => this.#run(step, sharers, isAlone), maxItems })
      this.#batches.set(step, batches)
    }
    return batches.submit(sharer)
  }

  async #run(step: Step, sharers: Sharer[], isAlone: boolean) {
    const takeOne = async (tx: Tx, { work, conclude }: Sharer) => conclude(await step.tx!(work, tx), tx)
    try {
      return await transactTogether(this.#database, sharers, isAlone, takeOne)
    } catch (error) {
      const [only, ...others] = sharers
      if (!(error instanceof Unmet) || !step.onUnmet || others.length > 0) throw error
      throw await step.onUnmet(only!.work)
    }
  }
}
